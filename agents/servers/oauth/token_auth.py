"""Authentication of the requests of a session by stored tokens, or by the credentials of a machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import extract_scope_from_www_auth
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.safety.secrets import origin
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens, Tokens
from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.catalog.formats.server_config import MachineSignIn, ServerConfig


def authentication(
    server: ServerConfig, user: str, fail: Callable[[Fault], None], hide: Callable[[str], None]
) -> httpx2.Auth | None:
    """How the requests to a server are authenticated; None if its entry has an ``Authorization`` header.

    Args:
        server: The server, variables expanded.
        user: The user for whom it is called.
        fail: Ends the session with a fault.
        hide: Removes a secret from all that the session returns.
    """
    address, machine = server.url or "", server.callsheet.sign_in
    if any(name.lower() == "authorization" for name in server.headers):
        return None
    if machine is None:
        return TokenAuth(StoredTokens(address, user), fail, hide)
    return MachineAuth(address, machine, fail, hide)


class TokenAuth(httpx2.Auth):
    """Sends the stored access token to its server, refreshes it, and says when the user must sign in."""

    def __init__(self, stored: StoredTokens, fail: Callable[[Fault], None], hide: Callable[[str], None]) -> None:
        self._stored, self._fail, self._hide = stored, fail, hide
        self._home = origin(stored.server)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """One request, sent again once after a refresh."""
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
        raise _failed(self._fail, _told(self._stored, await self._missed(tokens, response)))

    async def _missed(self, tokens: Tokens | None, response: httpx2.Response) -> str:
        """What a server asks for; scopes that it finds missing are stored, for the next sign-in."""
        if response.status_code != 403:
            return "sign-in"
        scope = extract_scope_from_www_auth(response)
        if tokens is None or not scope:
            return "more rights than you have given"
        try:
            await asyncio.to_thread(self._stored.miss, tokens, scope)
        except (SignInError, SettingsError, OSError) as error:
            raise _failed(self._fail, str(error)) from error
        return f"more rights than you have given ({scope})"

    async def _tokens(self, refused: Tokens | None) -> Tokens | None:
        """The tokens, refreshed if they have expired or were refused."""
        try:
            old = refused or await asyncio.to_thread(self._stored.read)
            if old is None or (refused is None and old.fresh):
                return old
            return await asyncio.to_thread(self._stored.refreshed, old)
        except (SignInError, SettingsError) as error:
            raise _failed(self._fail, str(error)) from error


class MachineAuth(ClientCredentialsOAuthProvider):
    """Signs in with the credentials of a machine (OAuth 2.1, client credentials), once a session."""

    def __init__(
        self, address: str, machine: MachineSignIn, fail: Callable[[Fault], None], hide: Callable[[str], None]
    ) -> None:
        super().__init__(
            address, self, machine.client_id, machine.client_secret, scope=machine.scope, issuer=machine.issuer
        )
        self._fail, self._hide = fail, hide
        self._known = {origin(place) for place in (address, machine.issuer)}

    async def get_tokens(self) -> OAuthToken | None:
        """None: a session gets its own."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """The library keeps them in memory."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """None: the client is known from the catalog."""

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """The client is known from the catalog."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """As in the library, but with the server and the issuer only; a failure ends the session with its reason."""
        response = None
        async with aclosing(super().async_auth_flow(request)) as flow:
            while True:
                try:
                    sent = await (flow.__anext__() if response is None else flow.asend(response))
                    if origin(str(sent.url)) not in self._known:
                        raise OAuthFlowError(f"its server leads to {sent.url.host}, which is not the issuer")
                except StopAsyncIteration:
                    return
                except OAuthFlowError as error:
                    raise _failed(self._fail, f"the machine cannot sign in: {error}") from error
                if self.context.current_tokens:
                    self._hide(self.context.current_tokens.access_token)
                response = yield sent


def _failed(fail: Callable[[Fault], None], why: str) -> Fault:
    """The fault that ends a session: the client library lets nobody know of errors of an authentication."""
    fault = Fault("sign_in", why, effect="none")
    fail(fault)
    return fault


def _asks(response: httpx2.Response) -> bool:
    """Whether a response asks for another token: for any, or for one with more scopes."""
    asked = response.headers.get("www-authenticate", "Bearer").lower()
    if response.status_code == 403:
        return "insufficient_scope" in asked and "www-authenticate" in response.headers
    return response.status_code == 401 and "bearer" in asked


def _told(stored: StoredTokens, what: str) -> str:
    whose = f" --user {stored.user}" if stored.user else ""
    return f"it asks for {what}: run `callsheet sign-in {stored.server}{whose}`"
