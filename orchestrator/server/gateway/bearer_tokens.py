"""Who a bearer token stands for: a file of token hashes, or the signed tokens of an authorization server."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import jwt
from anyio import CapacityLimiter, to_thread
from mcp.server.auth.provider import AccessToken
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from callsheet.graphs import SettingsError, User
from callsheet.orchestrator.run.run_context import user_of

_LOG = logging.getLogger("callsheet")
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_METADATA = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
_SECONDS, _PAUSE = 10.0, 10.0


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    user: str = Field(min_length=1)
    groups: tuple[str, ...] = ()
    expires: AwareDatetime | None = None


class _Entries(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens: tuple[_Entry, ...]


class TokenFile:
    """Tokens by their SHA-256 in a JSON file, which is read again when it changes.

    ``{"tokens": [{"sha256": "...", "user": "anna", "groups": ["sales"], "expires": "2030-01-01T00:00:00Z"}]}``; the
    last two are optional. A token that is taken out, or has expired, is refused from then on. A file that has become
    unreadable refuses all.

    Raises:
        SettingsError: The file cannot be read, or has another form.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stamp: tuple[int, int] | None = None
        self._users: dict[str, _Entry] = {}
        self._read()

    async def verify_token(self, token: str) -> AccessToken | None:
        """The user of a token; None for an unknown or expired one."""
        try:
            await to_thread.run_sync(self._read)
        except SettingsError:
            return None
        entry = self._users.get(hashlib.sha256(token.encode("utf-8", "replace")).hexdigest())
        if entry is None or (entry.expires and entry.expires <= datetime.now(UTC)):
            return None
        return AccessToken(
            token="", client_id=entry.user, scopes=[], subject=entry.user, claims={"groups": list(entry.groups)}
        )

    def _read(self) -> None:
        try:
            status = self._file.stat()
            if self._stamp == (stamp := (status.st_mtime_ns, status.st_size)):
                return
            entries = _Entries.model_validate_json(self._file.read_bytes())
        except OSError as error:
            raise SettingsError(f"the file of tokens {self._file} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            raise SettingsError(f"the file of tokens {self._file}: {where}: {first['msg']}") from error
        self._users, self._stamp = {entry.sha256: entry for entry in entries.tokens}, stamp


class IssuedTokens:
    """Signed tokens (JWT, RFC 9068) of an authorization server, checked with its published keys.

    Issuer, audience, expiry and signature are checked. The user is the ``sub``; ``groups`` and the scopes are groups.

    Args:
        issuer: Address of the authorization server, exactly as it names itself.
        audience: Address of this gateway, for which tokens must be issued.
    """

    def __init__(self, issuer: str, audience: str) -> None:
        self._issuer, self._audience = issuer, audience
        self._keys: jwt.PyJWKClient | None = None
        self._looking, self._failed = threading.Lock(), -_PAUSE
        self._limiter = CapacityLimiter(4)  # a slow server must not hold all threads of the gateway

    async def verify_token(self, token: str) -> AccessToken | None:
        """The user of a token; None for one that is invalid, expired, or issued by or for somebody else."""
        if token.count(".") != 2:
            return None
        return await to_thread.run_sync(self._verified, token, limiter=self._limiter)

    def _verified(self, token: str) -> AccessToken | None:
        try:
            key = self._known_keys().get_signing_key_from_jwt(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(_ALGORITHMS),
                issuer=self._issuer,
                audience=self._audience,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWKClientConnectionError, httpx2.HTTPError, KeyError, ValueError) as error:
            _LOG.warning("no token can be checked: the keys of %s cannot be read: %s", self._issuer, error)
            return None
        except jwt.PyJWTError:
            return None
        scopes = claims.get("scope")
        return AccessToken(
            token="",
            client_id=str(claims.get("client_id") or claims["sub"]),
            scopes=scopes.split() if isinstance(scopes, str) else [],
            expires_at=int(claims["exp"]),
            subject=str(claims["sub"]),
            claims={"iss": self._issuer, "groups": claims.get("groups")},
        )

    def _known_keys(self) -> jwt.PyJWKClient:
        """The published keys; after a failure, they are not asked for again at once."""
        with self._looking:
            if self._keys is None:
                if time.monotonic() < self._failed + _PAUSE:
                    raise ValueError("its metadata could not be read a moment ago")
                self._failed = time.monotonic()
                self._keys = jwt.PyJWKClient(self._keys_address(), timeout=_SECONDS)
            return self._keys

    def _keys_address(self) -> str:
        """Address of the keys, from the server's metadata (RFC 8414, OpenID Connect Discovery)."""
        for path in _METADATA:
            answer = httpx2.get(self._issuer.rstrip("/") + path, timeout=_SECONDS)
            if answer.is_success and isinstance(found := json.loads(answer.content), dict):
                if found.get("issuer") != self._issuer:
                    raise ValueError("the metadata are those of another issuer")
                return str(found["jwks_uri"])
        raise ValueError("the authorization server publishes no metadata")


def user_of_token(token: AccessToken | None) -> User:
    """The user for the policy; anonymous without a token."""
    if token is None or (token.expires_at is not None and token.expires_at <= time.time()):
        return User()
    return user_of({"identity": token.subject, "groups": (token.claims or {}).get("groups")}, token.scopes)
