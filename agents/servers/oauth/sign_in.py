"""A person's sign-in: the flow of the MCP SDK, with checks of what that flow lets through.

The SDK discovers the authorization server, registers a client, makes the page's address with PKCE, and exchanges the
code; it checks resource, issuer, state and the answer's issuer.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
import uvicorn
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthTokenError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError
from starlette.applications import Starlette
from starlette.routing import Route

from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.servers.oauth.addresses import check_safe
from callsheet.agents.servers.oauth.callback import (
    MOST,
    PAUSE,
    PendingSignIn,
    await_answer,
    callback,
    end_sign_in,
    pending_sign_in,
)
from callsheet.agents.servers.oauth.encryption import encrypted
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens, Tokens, check_scope, expiry
from callsheet.agents.servers.transport.http import BoundedBody
from callsheet.graphs.catalog.errors import CallsheetError, SettingsError
from callsheet.graphs.text.sanitizing import shown

# Its errors are raised as well; the traceback would show what a server says as it is.
logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())
logging.getLogger("mcp.client.auth").propagate = False

LASTS = 600.0
"""Seconds for which a person can sign in."""
OpenPage = Callable[[str], Awaitable[None]]
_ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "callsheet", "version": "0.1.0"}}
_HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _ABOUT}
_HEADERS = {"accept": "application/json, text/event-stream", "accept-encoding": "identity"}
_TIMEOUT, _LARGEST = 30.0, 1_000_000


async def browser_sign_in(
    server: str, open_page: OpenPage, *, port: int = 0, seconds: float = 300.0, **more: Any
) -> Tokens:
    """As ``sign_in``, with the answer on a loopback address (RFC 8252).

    Its ``port`` is any if 0; a client that was registered before may need a certain one.
    """
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise SignInError(f"port {port} cannot be used: {error.strerror}") from error
    with listener:
        redirect = f"http://127.0.0.1:{listener.getsockname()[1]}/callback"
        app = Starlette(routes=[Route("/callback", callback)])
        web = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=2))
        # In a thread: in the main one, it would take the interrupts of the person.
        serving = threading.Thread(target=web.run, kwargs={"sockets": [listener]}, daemon=True)
        serving.start()
        try:
            return await sign_in(server, redirect, open_page, seconds=seconds, **more)
        finally:
            web.should_exit = True
            await asyncio.to_thread(serving.join)


async def sign_in(
    server: str,
    redirect: str,
    open_page: OpenPage,
    *,
    user: str = "",
    client: OAuthClientInformationFull | None = None,
    scope: str | None = None,
    browser: str = "",
    hide: Callable[[str], str] = str,
    seconds: float = LASTS,
) -> Tokens:
    """Signs a person in: discovery, registration, consent in a browser, and the exchange of the code.

    Args:
        server: Address of the server.
        redirect: Where the answer is to come: a route ``callback``, of any process with the same store and key.
        open_page: Shows the authorization server's page to the person.
        user: Who signs in.
        client: A client that was registered before; None registers one.
        scope: Scopes to ask for; None: those that the server names, and has found missing since the sign-in before.
        browser: As in ``PendingSignIn``.
        hide: Removes the secrets of the server's address from errors.
        seconds: How long to wait for the person.

    Returns:
        The tokens, which are stored.

    Raises:
        SignInError: The server asks for no sign-in, its metadata are not those of its own, the scopes are malformed,
            the person refused, the time is over, or a request failed.
        SettingsError: There is no key to encrypt the tokens.
        OSError: They cannot be stored.
    """
    await asyncio.to_thread(encrypted, b"")  # without a key, nobody is sent to a page
    stored = StoredTokens(server, user)
    wanted = await asyncio.to_thread(_step_up, stored) if scope is None else scope
    if wanted:
        check_scope(wanted)
    flow, problem = _Flow(stored, redirect, open_page, client, wanted, browser, seconds), "it was given up"
    try:
        tokens, problem = await flow.tokens(), ""
    except (CallsheetError, OSError) as error:
        if (problem := hide(str(error))) != str(error):
            raise SignInError(problem) from None
        raise
    finally:
        await flow.end(problem)
    return tokens


class _StoredError(Exception):
    """Ends the SDK's flow, which would greet the server once more with the token."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__()
        self.tokens = tokens


@dataclass(slots=True)
class _Flow:
    """One sign-in: the SDK's flow with its ``TokenStorage`` and its handlers."""

    stored: StoredTokens
    redirect: str
    open_page: OpenPage
    client: OAuthClientInformationFull | None
    scope: str
    browser: str
    seconds: float
    auth: OAuthClientProvider = field(init=False)
    home: httpx2.URL = field(init=False)
    page: httpx2.URL = field(default_factory=httpx2.URL)
    until: float = 0.0
    opening: asyncio.Task[None] | None = None
    issued: Tokens | None = None

    def __post_init__(self) -> None:
        self.home = httpx2.URL(self.stored.server)
        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(self.redirect)], client_name="Callsheet")
        self.auth = OAuthClientProvider(self.stored.server, metadata, self, self._open, self._answer)

    async def tokens(self) -> Tokens:
        """Runs the flow."""
        server = self.stored.server
        failed = f"signing in to {server} failed"
        hooks: Any = {"request": [self._check], "response": [self._prepare]}
        try:
            async with (
                httpx2.AsyncClient(auth=self.auth, timeout=_TIMEOUT, event_hooks=hooks) as http,
                http.stream("POST", server, json=_HELLO, headers=_HEADERS) as answer,
            ):
                raise SignInError(f"{server} asks for no sign-in (status {answer.status_code})")
        except _StoredError as done:
            return done.tokens
        except OAuthTokenError as error:  # the rest of it may repeat a token
            raise SignInError(f"{failed}: {shown(str(error).partition(':')[0])}") from None
        except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError, Fault) as error:
            raise SignInError(f"{failed}: {_said(error)}") from error

    async def end(self, problem: str) -> None:
        """Ends the waiting for an answer; its callback tells the problem, if there is one."""
        if self.opening is not None:
            self.opening.cancel()
        if self.until:
            await asyncio.to_thread(end_sign_in, self.page.params["state"], problem)

    async def get_tokens(self) -> OAuthToken | None:
        """None: tokens of before are not used."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Stores the tokens."""
        metadata = self._metadata()
        if (client := self.client) is None:
            raise ValueError("no client was registered")
        self.issued = Tokens(
            server=self.stored.server,
            user=self.stored.user,
            tokens=tokens,
            expires=expiry(tokens),
            client=client,
            issuer=str(metadata.issuer),
            token_endpoint=str(metadata.token_endpoint),
            revocation_endpoint=str(metadata.revocation_endpoint) if metadata.revocation_endpoint else None,
            resource=self.page.params.get("resource"),
        )
        await asyncio.to_thread(self.stored.write, self.issued)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client that was registered before."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keeps the client that was registered now."""
        self.client = client_info

    async def _open(self, page: str) -> None:
        for address in (page, self._metadata().token_endpoint, self._metadata().revocation_endpoint):
            if address is not None:
                check_safe(self.home.host, str(address))
                if "@" in urlsplit(str(address)).netloc:
                    raise ValueError("one of its addresses contains a user name, which looks like a host")
        self.page = httpx2.URL(page)
        self.until = time.time() + self.seconds
        pending = PendingSignIn(user=self.stored.user, browser=self.browser, expires=self.until)
        await asyncio.to_thread(await_answer, self.page.params["state"], pending)
        # Beside this: a browser of the terminal is there until its user ends it.
        self.opening = asyncio.ensure_future(self.open_page(page))

    async def _answer(self) -> AuthorizationCodeResult:
        answer = await self._waited()
        if "error" in answer:
            raise OAuthFlowError(
                f"the authorization server refused: {answer['error']} {answer.get('error_description', '')}"
            )
        return AuthorizationCodeResult(code=answer.get("code", ""), state=answer["state"], iss=answer.get("iss"))

    async def _waited(self) -> Mapping[str, str]:
        server = self.stored.server
        while (known := await asyncio.to_thread(pending_sign_in, self.page.params["state"])) is not None:
            if known.answer is not None:
                return known.answer
            if self.opening is not None and self.opening.done():
                self.opening.result()
            await asyncio.sleep(PAUSE)
        if time.time() < self.until:
            raise SignInError(f"the sign-in to {server} was dropped: {MOST} others of the same user began after it")
        raise SignInError(f"nobody signed in to {server} within {self.seconds:g} s")

    def _metadata(self) -> OAuthMetadata:
        """Metadata of the authorization server, without which the SDK guesses its addresses.

        Raises:
            ValueError: There are none.
        """
        if (metadata := self.auth.context.oauth_metadata) is None:
            raise ValueError("it names no authorization server, or this one publishes no metadata")
        return metadata

    async def _check(self, request: httpx2.Request) -> None:
        """Refuses requests to unsafe addresses, and sends clients and codes to the published addresses only.

        The SDK follows redirects within an origin, and registers clients with a server that does not offer it.
        """
        if self.issued is not None:
            raise _StoredError(self.issued)
        check_safe(self.home.host, str(request.url))
        if request.method != "POST" or request.url == self.home:
            return
        metadata = self._metadata()
        if request.url in (httpx2.URL(str(metadata.token_endpoint)), httpx2.URL(str(metadata.registration_endpoint))):
            return
        if metadata.registration_endpoint is None and self.client is None:
            raise ValueError("its authorization server registers no clients: name one with --client-id")
        raise ValueError(f"its authorization server leads elsewhere, to {request.url.copy_with(query=None)}")

    async def _prepare(self, response: httpx2.Response) -> None:
        """Bounds an answer, and lets an API that does not know the greeting of MCP count as one that asks for sign-in.

        The SDK registers a client for the scopes that the server asks for, and asks for those: here, for ``scope``.
        """
        response.stream = BoundedBody(response, _LARGEST, lambda fault: None, lambda: 0)
        if response.request.url == self.home and response.is_client_error:
            response.status_code = 401
            if self.scope:
                asked = response.headers.get("www-authenticate", "Bearer")
                response.headers["www-authenticate"] = f'Bearer scope="{self.scope}", {asked}'


def _step_up(stored: StoredTokens) -> str:
    try:
        before = stored.read()
    except SettingsError:  # the sign-in replaces what cannot be read
        before = None
    return (before and before.step_up) or ""


def _said(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"an answer is malformed: {error.errors(include_input=False)[0]['msg']}"
    return " ".join(shown(str(error), most=300).split()) or type(error).__name__
