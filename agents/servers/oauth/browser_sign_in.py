"""Signing in to a server in a browser, with the answer on a loopback address (RFC 8252)."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx2
import uvicorn
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from callsheet.agents.servers.oauth.stored_tokens import SignInError, Tokens, expiry
from callsheet.agents.servers.transport.bounded_body import BoundedBody
from callsheet.agents.tools.tool_result import Fault
from callsheet.graphs.text.sanitizing import shown

# Its errors are raised as well; the traceback would show what a server says as it is.
logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())
logging.getLogger("mcp.client.auth").propagate = False

_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "callsheet", "version": "0.1.0"},
    },
}
_HEADERS = {"accept": "application/json, text/event-stream", "accept-encoding": "identity"}
_TIMEOUT, _LARGEST = 30.0, 1_000_000
_DONE = "Signed in. You can close this page."
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def browser_sign_in(
    server: str,
    open_page: Callable[[str], Awaitable[None]],
    *,
    user: str = "",
    client: OAuthClientInformationFull | None = None,
    scope: str | None = None,
    port: int = 0,
    seconds: float = 300.0,
) -> Tokens:
    """Signs in: discovery, registration, consent in a browser, and the exchange of the code, with PKCE.

    Args:
        server: Address of the server.
        open_page: Shows the authorization server's page to the person.
        user: Who signs in.
        client: A client that was registered before; None registers one.
        scope: Scopes to ask for; None: those that the server names.
        port: Port of the loopback address; 0 for any. A client that was registered before may need a certain one.
        seconds: How long to wait for the person.

    Returns:
        The tokens, not stored yet.

    Raises:
        SignInError: The server asks for no sign-in, its metadata are not those of its own, the person refused, the
            time is over, or a request failed.
    """
    storage, listener = _Given(client), _listener(port)
    redirect = f"http://127.0.0.1:{listener.getsockname()[1]}/callback"
    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(redirect)], client_name="Callsheet", scope=scope)
    try:
        async with asyncio.timeout(seconds), _Callback(listener) as callback:
            auth = OAuthClientProvider(server, metadata, storage, callback.begun(open_page), callback.answer)
            hooks: Any = {"request": [partial(_is_safe, httpx2.URL(server).host)], "response": [_bounded]}
            async with (
                httpx2.AsyncClient(auth=auth, timeout=_TIMEOUT, event_hooks=hooks) as http,
                http.stream("POST", server, json=_HELLO, headers=_HEADERS) as answer,
            ):
                status = answer.status_code
    except TimeoutError as error:
        raise SignInError(f"nobody signed in to {server} within {seconds:g} s") from error
    except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValidationError, ValueError, OSError, Fault) as error:
        raise SignInError(f"signing in to {server} failed: {_said(error)}") from error
    finally:
        listener.close()
    found = auth.context.oauth_metadata
    if storage.tokens is None or storage.client is None:
        raise SignInError(f"{server} asks for no sign-in (status {status})")
    if found is None:
        raise SignInError(f"{server}: its authorization server publishes no metadata")
    return Tokens(
        server=server,
        user=user,
        tokens=storage.tokens,
        expires=expiry(storage.tokens),
        client=storage.client,
        issuer=str(found.issuer),
        token_endpoint=str(found.token_endpoint),
        revocation_endpoint=str(found.revocation_endpoint) if found.revocation_endpoint else None,
        resource=auth.context.get_resource_url(),
    )


class _Given:
    """What a flow is given, in memory; a token of before is not used."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _Callback:
    """Takes the answer of the authorization server from the browser."""

    def __init__(self, listener: socket.socket) -> None:
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        app = Starlette(routes=[Route("/callback", self._take)])
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        self._listener = listener
        self._state: str | None = None

    async def __aenter__(self) -> _Callback:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._task

    def begun(self, open_page: Callable[[str], Awaitable[None]]) -> Callable[[str], Awaitable[None]]:
        """Opens the page, and takes only the answer to it: any other page can reach a loopback address."""

        async def begin(page: str) -> None:
            self._state = httpx2.URL(page).params.get("state")
            await open_page(page)

        return begin

    async def answer(self) -> AuthorizationCodeResult:
        """The code, when it comes."""
        return await self._answer

    async def _take(self, request: Request) -> PlainTextResponse:
        given = request.query_params
        if self._answer.done() or not self._state or given.get("state") != self._state:
            return PlainTextResponse("This is not the answer that is waited for.", 400)
        if "error" in given:
            told = " ".join(shown(f"{given['error']} {given.get('error_description', '')}", most=300).split())
            self._answer.set_exception(OAuthFlowError(f"the authorization server refused: {told}"))
            return PlainTextResponse("Not signed in. You can close this page.")
        self._answer.set_result(
            AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))
        )
        return PlainTextResponse(_DONE)


async def _is_safe(home: str, request: httpx2.Request) -> None:
    """Refuses to send codes and tokens unencrypted over a network, and to let a server reach this machine.

    Raises:
        ValueError: The address is not https, or is of this machine although the server is not.
    """
    if request.url.host in _LOOPBACK:
        if home not in _LOOPBACK:
            raise ValueError(f"{home} leads to an address of this machine")
    elif request.url.scheme != "https":
        raise ValueError(f"{request.url.copy_with(query=None)} is not https")


async def _bounded(response: httpx2.Response) -> None:
    response.stream = BoundedBody(response, _LARGEST, lambda fault: None, lambda: 0)


def _listener(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        # Otherwise a fixed port could be used once in a minute only.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise SignInError(f"port {port} cannot be used: {error.strerror}") from error
    return listener


def _said(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"an answer is malformed: {error.errors(include_input=False)[0]['msg']}"
    return f"{error}" or type(error).__name__
