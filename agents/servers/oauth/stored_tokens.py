"""Stores tokens by server address and user, encrypted; one process at a time refreshes them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx2
from mcp.client.auth.utils import extract_scope_from_www_auth, union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.shared.auth_utils import calculate_token_expiry
from pydantic import BaseModel, ConfigDict, ValidationError

from callsheet.agents.calls.outcome import Fault
from callsheet.agents.safety.secrets import origin
from callsheet.graphs.errors import CallsheetError, SettingsError, needs_extra
from callsheet.graphs.storage import state_file

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_EARLY = 30.0
_TIMEOUT = 20.0
_LARGEST = 100_000
_SCOPES = re.compile(r"(?=.{1,1000}\Z)[!#-\[\]-~]+( [!#-\[\]-~]+)*")
"""Scopes as in RFC 6749, 3.3; limited in length, because the sign-in page shows them."""
VARIABLE = "CALLSHEET_KEY"
_SHORTEST = 32
_NO_KEY = (
    f"tokens are stored encrypted, and there is no key: set {VARIABLE} to a secret of at least {_SHORTEST} characters "
    "(openssl rand -hex 32 makes one), or use the system's keyring"
)


class SignInError(CallsheetError, RuntimeError):
    """Raised if a sign-in, or the refresh of its tokens, fails."""


class OtherKeyError(SettingsError):
    """Raised if something stored cannot be read because it was encrypted with another key."""


def encrypted(content: bytes) -> bytes:
    """Encrypts and signs the content."""
    return _fernet(create=True).encrypt(content)


def decrypted(content: bytes) -> bytes:
    """Decrypts what ``encrypted`` has encrypted; raises an ``OtherKeyError`` if that was with another key."""
    fernet = _fernet(create=False)
    from cryptography.fernet import InvalidToken

    try:
        return fernet.decrypt(content)
    except InvalidToken as error:
        raise OtherKeyError(
            f"the stored sign-ins were encrypted with another key than {VARIABLE} or the keyring's: "
            "set that key again, or sign in again"
        ) from error


def _fernet(*, create: bool) -> Fernet:
    try:
        from cryptography.fernet import Fernet
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError as error:
        raise SettingsError(f"a sign-in {needs_extra('sign-in')}") from error
    secret = os.environ.get(VARIABLE) or _of_keyring(create=create)
    if len(secret) < _SHORTEST:
        raise SettingsError(
            f"{VARIABLE} has {len(secret)} characters and needs at least {_SHORTEST}: `openssl rand -hex 32` makes one"
        )
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"callsheet/sign-in/v1").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(key))


def _of_keyring(*, create: bool) -> str:
    """Returns the secret in the system's keyring, and makes it when it is first needed."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as error:
        raise SettingsError(f"{_NO_KEY}, which {needs_extra('sign-in')}") from error
    try:
        secret: str | None = keyring.get_password("callsheet", VARIABLE)
        if secret is None and create:
            secret = secrets.token_hex(32)
            keyring.set_password("callsheet", VARIABLE, secret)
    except KeyringError as error:
        raise SettingsError(f"{_NO_KEY}: the keyring cannot be used ({error})") from error
    if secret is None:
        raise SettingsError(f"{_NO_KEY}: the keyring has no key yet")
    return secret


class Tokens(BaseModel):
    """The tokens of a sign-in, with what is needed to refresh them.

    Attributes:
        server: Address of the server to which the access token may be sent; it is sent to no other.
        expires: When the access token expires, in seconds since 1970; None if it is not known.
        resource: The resource for which they are issued (RFC 8707).
        wanted: Scopes for the next sign-in, if the server has asked for more than these tokens grant.
    """

    model_config = ConfigDict(frozen=True)

    server: str
    user: str = ""
    tokens: OAuthToken
    expires: float | None = None
    client: OAuthClientInformationFull
    issuer: str
    token_endpoint: str
    resource: str | None = None
    wanted: str = ""

    @property
    def fresh(self) -> bool:
        """Returns whether the access token is valid for at least another 30 seconds."""
        return self.expires is None or time.time() < self.expires - _EARLY


class StoredTokens:
    """The stored tokens of a user for a server address; an empty user means the person who runs the program."""

    def __init__(self, server: str, user: str = "") -> None:
        self.server = server
        self.user = user
        digest = hashlib.sha256(f"{server}\0{user}".encode()).hexdigest()  # an address may contain a secret
        self._file = state_file(f"sign-ins/{digest[:32]}")

    def read(self) -> Tokens | None:
        """Returns the tokens; None if nobody has signed in."""
        try:
            found = Tokens.model_validate_json(decrypted(self._file.read()))
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise SettingsError(f"the stored tokens for {self.server} cannot be read: sign in again") from error
        return found if (found.server, found.user) == (self.server, self.user) else None

    def write(self, tokens: Tokens) -> None:
        """Stores tokens."""
        self._file.replace(encrypted(tokens.model_dump_json().encode()))

    def remove(self) -> None:
        """Deletes the tokens."""
        self._file.remove()

    def miss(self, old: Tokens, scope: str) -> None:
        """Stores the further scopes that the server asks for, unless the tokens have changed since ``old``."""
        check_scope(scope)
        with self._file.locked():
            now = self.read()
            if now is not None and now.tokens.access_token == old.tokens.access_token:
                wanted = union_scopes(now.wanted or now.tokens.scope, scope) or ""
                check_scope(wanted)
                self.write(now.model_copy(update={"wanted": wanted}))

    def refreshed(self, old: Tokens) -> Tokens | None:
        """Refreshes the tokens; returns None if that is impossible, so that the user must sign in again.

        Only one process at a time refreshes, because an authorization server that sees a refresh token twice may revoke
        all tokens. Raises a ``SignInError`` if the server does not answer; the tokens may still be valid.
        """
        with self._file.locked():
            now = self.read()
            if now is None or now.tokens.access_token != old.tokens.access_token:
                return now
            answer = _refresh(now) if now.tokens.refresh_token else None
            if answer is None:
                return None
            # What the answer leaves out stays as it is (RFC 6749, 5.1 and 6).
            omitted = [name for name in ("refresh_token", "scope") if getattr(answer, name) is None]
            same = {name: getattr(now.tokens, name) for name in omitted}
            issued = answer.model_copy(update=same)
            new = now.model_copy(update={"tokens": issued, "expires": calculate_token_expiry(issued.expires_in)})
            self.write(new)
            return new


class TokenAuth(httpx2.Auth):
    """Sends the stored access token to its server, refreshes it, and reports when the user must sign in.

    ``fail`` ends the session, because the client library does not report errors of an authentication. ``hide`` makes
    the session remove a token from everything that it returns.
    """

    def __init__(self, stored: StoredTokens, fail: Callable[[Fault], None], hide: Callable[[str], None]) -> None:
        self._stored = stored
        self._fail = fail
        self._hide = hide
        self._home = origin(stored.server)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sends a request with the token; refreshes a refused token and sends the request once more."""
        if origin(str(request.url)) != self._home:
            yield request
            return
        tokens = await self._tokens(None)
        for again in (True, False):
            if tokens is not None:
                self._hide(tokens.tokens.access_token)
                request.headers["authorization"] = f"Bearer {tokens.tokens.access_token}"
            response = yield request
            if not _asks(response):
                return
            if again and tokens is not None and response.status_code == 401:
                tokens = await self._tokens(tokens)
            if tokens is None or not again or response.status_code == 403:
                break
        whose = f" --user {self._stored.user}" if self._stored.user else ""
        lacks = await self._missing(tokens, response)
        raise self._failed(f"it asks for {lacks}: run `callsheet sign-in {self._stored.server}{whose}`")

    async def _missing(self, tokens: Tokens | None, response: httpx2.Response) -> str:
        """Returns what the server requires, as part of an error; stores missing scopes for the next sign-in."""
        if response.status_code != 403:
            return "sign-in"
        scope = extract_scope_from_www_auth(response)
        if tokens is None or not scope:
            return "more rights than you have given"
        try:
            await asyncio.to_thread(self._stored.miss, tokens, scope)
        except (SignInError, SettingsError, OSError) as error:
            raise self._failed(str(error)) from error
        return f"more rights than you have given ({scope})"

    async def _tokens(self, refused: Tokens | None) -> Tokens | None:
        """Returns the tokens, refreshed if they have expired or were refused."""
        try:
            old = refused or await asyncio.to_thread(self._stored.read)
            if old is None or (refused is None and old.fresh):
                return old
            return await asyncio.to_thread(self._stored.refreshed, old)
        except (SignInError, SettingsError) as error:
            raise self._failed(str(error)) from error

    def _failed(self, why: str) -> Fault:
        fault = Fault("sign_in", why, effect="none")
        self._fail(fault)
        return fault


def check_scope(scope: str) -> None:
    """Raises a ``SignInError`` for malformed scopes, which may come from a server."""
    if not _SCOPES.fullmatch(scope):
        raise SignInError("the scopes to ask for are malformed, or longer than 1,000 characters")


def _refresh(tokens: Tokens) -> OAuthToken | None:
    """Requests new tokens with the refresh token, without following redirects; returns None if it is refused."""
    client = tokens.client
    server = f"the authorization server {tokens.issuer}"
    form = {"grant_type": "refresh_token", "refresh_token": tokens.tokens.refresh_token, "client_id": client.client_id}
    form |= {"resource": tokens.resource} if tokens.resource else {}
    auth = None
    if client.client_secret and str(client.token_endpoint_auth_method).endswith("_post"):
        form["client_secret"] = client.client_secret
    elif client.client_secret:
        auth = quote(client.client_id, safe=""), quote(client.client_secret, safe="")  # RFC 6749, 2.3.1
    try:
        with (
            httpx2.Client(timeout=_TIMEOUT, follow_redirects=False, auth=auth) as http,
            http.stream("POST", tokens.token_endpoint, data=form) as answer,
        ):
            content = b""
            for part in answer.iter_bytes():
                content += part
                if len(content) > _LARGEST:
                    raise SignInError(f"{server} answers with more than {_LARGEST:,} bytes")
    except httpx2.HTTPError as error:
        raise SignInError(f"{server} cannot be reached: {type(error).__name__}") from error
    if answer.status_code >= 500 or answer.status_code == 429:
        raise SignInError(f"{server} answers with status {answer.status_code}")
    try:
        return OAuthToken.model_validate_json(content) if answer.is_success else None
    except ValidationError as error:
        raise SignInError(f"{server} answers with something that is not a token") from error


def _asks(response: httpx2.Response) -> bool:
    """Returns whether a response asks for a token: for a valid one, or for one with more scopes."""
    asked = response.headers.get("www-authenticate", "Bearer").lower()
    if response.status_code == 403:
        return "insufficient_scope" in asked and "www-authenticate" in response.headers
    return response.status_code == 401 and "bearer" in asked
