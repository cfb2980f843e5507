"""Encryption of stored tokens, by a secret of the environment or one in the system's keyring."""

from __future__ import annotations

import base64
import os
import secrets
from typing import TYPE_CHECKING

from callsheet.graphs.catalog.errors import CallsheetError, SettingsError

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

VARIABLE, _SHORTEST = "CALLSHEET_KEY", 32
_EXTRA = "pip install 'callsheet[sign-in]'"
_NO_KEY = (
    f"tokens are stored encrypted, and there is no key: set {VARIABLE} to a secret of at least {_SHORTEST} characters "
    "(openssl rand -hex 32 makes one), or use the system's keyring: {}"
)


class SignInError(CallsheetError, RuntimeError):
    """Signing in, or refreshing a sign-in, has failed."""


def encrypted(content: bytes) -> bytes:
    """The content, encrypted and signed."""
    return _fernet(create=True).encrypt(content)


def decrypted(content: bytes) -> bytes:
    """The content of ``encrypted``."""
    fernet = _fernet(create=False)
    from cryptography.fernet import InvalidToken

    try:
        return fernet.decrypt(content)
    except InvalidToken as error:
        raise SettingsError(
            f"stored tokens were encrypted with another key than {VARIABLE} or the keyring's"
        ) from error


def _fernet(*, create: bool) -> Fernet:
    try:
        from cryptography.fernet import Fernet
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError as error:
        raise SettingsError(f"a sign-in needs the extra sign-in, which is not installed: {_EXTRA}") from error
    secret = os.environ.get(VARIABLE) or _of_keyring(create=create)
    if len(secret) < _SHORTEST:
        raise SettingsError(f"{VARIABLE} has {len(secret)} characters, and needs at least {_SHORTEST}")
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"callsheet/sign-in/v1").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(key))


def _of_keyring(*, create: bool) -> str:
    """The secret in the system's keyring, which is made when it is first needed."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as error:
        raise SettingsError(_NO_KEY.format(_EXTRA)) from error
    try:
        secret: str | None = keyring.get_password("callsheet", VARIABLE)
        if secret is None and create:
            secret = secrets.token_hex(32)
            keyring.set_password("callsheet", VARIABLE, secret)
    except KeyringError as error:
        raise SettingsError(_NO_KEY.format(f"this one cannot be used ({error})")) from error
    if secret is None:
        raise SettingsError(_NO_KEY.format("it holds none yet"))
    return secret
