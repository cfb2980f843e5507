"""Tokens by server address and user, encrypted, and refreshed by one process at a time."""

from __future__ import annotations

import hashlib
import re
import time
from typing import Any
from urllib.parse import quote

import httpx2
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import BaseModel, ConfigDict, ValidationError

from callsheet.agents.servers.oauth.encryption import decrypted, encrypted
from callsheet.graphs.catalog.errors import CallsheetError, SettingsError
from callsheet.graphs.storage import state_file

_EARLY, _TIMEOUT, _LARGEST = 30.0, 20.0, 100_000
_SCOPES = re.compile(r"(?=.{1,1000}\Z)[!#-\[\]-~]+( [!#-\[\]-~]+)*")
"""Scopes as in RFC 6749, 3.3, and not more than a page can show."""


class SignInError(CallsheetError, RuntimeError):
    """Signing in, or refreshing a sign-in, has failed."""


class Tokens(BaseModel):
    """What signing in has given.

    Attributes:
        server: Address of the server that takes the access token, and of no other.
        user: Who signed in; empty for whoever runs the program.
        expires: When the access token expires, in seconds since 1970; None if it is not known.
        revocation_endpoint: Where they are revoked; None if nowhere.
        resource: The resource for which they are issued (RFC 8707).
        missing: Scopes that the server has asked for since, and that the token does not have.
    """

    model_config = ConfigDict(frozen=True)

    server: str
    user: str = ""
    tokens: OAuthToken
    expires: float | None = None
    client: OAuthClientInformationFull
    issuer: str
    token_endpoint: str
    revocation_endpoint: str | None = None
    resource: str | None = None
    missing: str | None = None

    @property
    def fresh(self) -> bool:
        """Whether the access token is valid for a while."""
        return self.expires is None or time.time() < self.expires - _EARLY

    @property
    def step_up(self) -> str | None:
        """The scopes that the next sign-in must ask for: those of now and the missing ones; None if none is missing."""
        return union_scopes(self.tokens.scope, self.missing) if self.missing else None


class StoredTokens:
    """The tokens of one user for one server.

    Args:
        server: Address of the server, with all variables expanded.
        user: Id of the user; empty for whoever runs the program.
    """

    def __init__(self, server: str, user: str = "") -> None:
        self.server, self.user = server, user
        digest = hashlib.sha256(f"{server}\0{user}".encode()).hexdigest()  # an address may contain a secret
        self._file = state_file(f"sign-ins/{digest[:32]}")

    def read(self) -> Tokens | None:
        """The tokens; None if nobody has signed in.

        Raises:
            SettingsError: They cannot be decrypted.
        """
        try:
            found = Tokens.model_validate_json(decrypted(self._file.read()))
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise SettingsError(f"the stored tokens for {self.server} cannot be read: sign in again") from error
        return found if (found.server, found.user) == (self.server, self.user) else None

    def write(self, tokens: Tokens) -> None:
        """Stores tokens.

        Raises:
            SettingsError: There is no key to encrypt them.
            OSError: They cannot be written.
        """
        self._file.replace(encrypted(tokens.model_dump_json().encode()))

    def remove(self) -> None:
        """Forgets the tokens."""
        self._file.remove()

    def miss(self, old: Tokens, scope: str) -> None:
        """Stores that the server asks for more scopes, for which the next sign-in will ask.

        Raises:
            SignInError: As in ``check_scope``.
            SettingsError, OSError: As in ``read`` and ``write``.
        """
        check_scope(scope)
        with self._file.locked():
            now = self.read()
            if now is None or now.tokens.access_token != old.tokens.access_token:
                return
            new = now.model_copy(update={"missing": union_scopes(now.missing, scope)})
            check_scope(new.step_up or "")
            self.write(new)

    def refreshed(self, old: Tokens) -> Tokens | None:
        """The tokens after a refresh; None if they cannot be refreshed, so that the user must sign in again.

        One process at a time refreshes them: an authorization server that sees a refresh token twice may revoke all.

        Raises:
            SignInError: The authorization server does not answer; the tokens may still be good.
        """
        with self._file.locked():
            now = self.read()
            if now is None or now.tokens.access_token != old.tokens.access_token:
                return now
            if not now.tokens.refresh_token or (answer := _refresh(now)) is None:
                return None
            lacks = [name for name in ("refresh_token", "scope") if getattr(answer, name) is None]
            issued = answer.model_copy(update={name: getattr(now.tokens, name) for name in lacks})
            new = now.model_copy(update={"tokens": issued, "expires": expiry(issued)})
            self.write(new)
            return new


def check_scope(scope: str) -> None:
    """Checks scopes, which a server may have named.

    Raises:
        SignInError: They are malformed, or longer than 1,000 characters.
    """
    if not _SCOPES.fullmatch(scope):
        raise SignInError("the scopes to ask for are malformed, or longer than 1,000 characters")


def expiry(tokens: OAuthToken) -> float | None:
    """When an access token that was issued now expires, in seconds since 1970."""
    return time.time() + tokens.expires_in if tokens.expires_in is not None else None


def revoke(tokens: Tokens) -> bool:
    """Revokes tokens at their authorization server (RFC 7009); whether it has agreed."""
    if tokens.revocation_endpoint is None:
        return False
    token = tokens.tokens.refresh_token or tokens.tokens.access_token
    try:
        return posted(tokens.client, tokens.issuer, tokens.revocation_endpoint, {"token": token}).is_success
    except SignInError:
        return False


def _refresh(tokens: Tokens) -> OAuthToken | None:
    form = {"grant_type": "refresh_token", "refresh_token": tokens.tokens.refresh_token or ""}
    form |= {"resource": tokens.resource} if tokens.resource else {}
    answer = posted(tokens.client, tokens.issuer, tokens.token_endpoint, form)
    if answer.status_code >= 500 or answer.status_code == 429:
        raise SignInError(f"the authorization server {tokens.issuer} answers with status {answer.status_code}")
    if not answer.is_success:
        return None
    try:
        return OAuthToken.model_validate_json(answer.content)
    except ValidationError as error:
        raise SignInError(f"the authorization server {tokens.issuer} gives an answer that is not a token") from error


def posted(client: OAuthClientInformationFull, issuer: str, address: str, form: dict[str, Any]) -> httpx2.Response:
    """The answer of an authorization server to a form of the registered client; nobody is followed elsewhere.

    Raises:
        SignInError: It cannot be reached, or answers with too much.
    """
    auth = None
    data = {**form, "client_id": client.client_id}
    if client.client_secret and str(client.token_endpoint_auth_method).endswith("_post"):
        data["client_secret"] = client.client_secret
    elif client.client_secret:
        auth = quote(client.client_id, safe=""), quote(client.client_secret, safe="")  # RFC 6749, 2.3.1
    try:
        with (
            httpx2.Client(timeout=_TIMEOUT, follow_redirects=False, auth=auth) as http,
            http.stream("POST", address, data=data) as answer,
        ):
            content = b""
            for part in answer.iter_bytes():
                content += part
                if len(content) > _LARGEST:
                    raise SignInError(f"the authorization server {issuer} answers with more than {_LARGEST:,} bytes")
            return httpx2.Response(answer.status_code, content=content)
    except httpx2.HTTPError as error:
        raise SignInError(f"the authorization server {issuer} cannot be reached: {type(error).__name__}") from error
