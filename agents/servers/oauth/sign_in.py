"""Signs a person in by the flow of the MCP SDK, with further checks, and takes the answer of the browser."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
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
from mcp.shared.auth_utils import calculate_token_expiry
from pydantic import AnyUrl, BaseModel, ConfigDict, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from callsheet.agents.calls.outcome import Fault
from callsheet.agents.servers.oauth.addresses import check_safe
from callsheet.agents.servers.oauth.stored_tokens import (
    OtherKeyError,
    SignInError,
    StoredTokens,
    Tokens,
    check_scope,
    decrypted,
    encrypted,
)
from callsheet.agents.servers.transport.http import BoundedHttpClient
from callsheet.graphs.errors import CallsheetError, SettingsError
from callsheet.graphs.storage import state_file
from callsheet.graphs.text.hidden import shown

LASTS = 600.0
"""Seconds for which a person can sign in."""
PAUSE = 0.2
"""Seconds between two checks whether the answer has been stored."""
MOST = 20
"""Maximum number of pending sign-ins of one user."""
_SECONDS = 40.0
HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
_LOG = logging.getLogger("callsheet")
_NOBODY = "no sign-in waits for this answer: it was already given, or it is too late"
_ELSEWHERE = "another browser began this sign-in: begin it in the browser in which you end it"
_ABANDONED = "the process that began this sign-in does not end it: begin again"


class PendingSignIn(BaseModel):
    """A sign-in that waits for a person.

    Attributes:
        expires: When it is dropped, in seconds since 1970.
        browser: The value of the cookie that its browser must send; empty for none.
        answer: The query of the redirect, after it has come.
        problem: Why it has failed; empty if it has not.
    """

    model_config = ConfigDict(frozen=True)

    user: str
    expires: float
    browser: str = ""
    answer: Mapping[str, str] | None = None
    problem: str = ""


_PENDING = TypeAdapter(dict[str, PendingSignIn])
"""By the parameter ``state``, the oldest first."""


def await_answer(state: str, pending: PendingSignIn) -> None:
    """Stores a pending sign-in; of more than ``MOST`` of one user, the oldest is deleted."""
    with _waiting() as known:
        for old in [name for name, one in known.items() if one.user == pending.user][: -MOST + 1]:
            del known[old]
        known[state] = pending


def pending_sign_in(state: str) -> PendingSignIn | None:
    """Returns a pending sign-in; None if it has ended or was deleted."""
    return _read().get(state)


def end_sign_in(state: str, problem: str) -> None:
    """Deletes a sign-in; one that failed after its answer stays until it expires, so its page shows the problem."""
    with _waiting() as known:
        ended = known.pop(state, None)
        if ended is not None and ended.answer is not None and problem:
            known[state] = ended.model_copy(update={"problem": problem})


def take_answer(answer: Mapping[str, str], cookies: Mapping[str, str]) -> str:
    """Accepts the answer of an authorization server once, and returns its ``state``."""
    state = answer.get("state", "")
    with _waiting() as known:
        if state not in known or known[state].answer is not None:
            raise SignInError(_NOBODY)
        if not secrets.compare_digest(known[state].browser.encode(), cookies.get(_cookie(state), "").encode()):
            raise SignInError(_ELSEWHERE)
        known[state] = known[state].model_copy(update={"answer": dict(answer)})
    return state


async def callback(request: Request) -> PlainTextResponse:
    """Serves the redirect: accepts the answer and shows whether the sign-in has succeeded."""
    try:
        state = await run_in_threadpool(take_answer, dict(request.query_params), request.cookies)
        problem = await _outcome(state)
    except SignInError as error:
        return PlainTextResponse(f"Not signed in: {error}.", 400, HEADERS)
    except (CallsheetError, OSError) as error:
        _LOG.warning("a sign-in was not stored: %s", error)
        return PlainTextResponse("Not signed in: the answer cannot be stored; see the log.", 500, HEADERS)
    told = f"Not signed in: {problem}." if problem else "Signed in: repeat your request."
    return PlainTextResponse(f"{told} You can close this page.", headers=HEADERS)


def cookie_of(page: str) -> str:
    """Returns the name of the cookie that identifies the browser that opens the authorization server's page."""
    return _cookie(httpx2.URL(page).params["state"])


def _cookie(state: str) -> str:
    return f"callsheet-sign-in-{hashlib.sha256(state.encode()).hexdigest()[:16]}"


async def _outcome(state: str) -> str:
    """Waits for the sign-in to end; returns its problem, or an empty text."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        known = await run_in_threadpool(pending_sign_in, state)
        if known is None or known.problem:
            return known.problem if known else ""
        await asyncio.sleep(PAUSE)
    return _ABANDONED


@contextmanager
def _waiting() -> Iterator[dict[str, PendingSignIn]]:
    """Yields the pending sign-ins, for one process at a time, and stores them afterwards unless there is an error."""
    file = state_file("pending-sign-ins")
    with file.locked():
        yield (known := _read())
        if known:
            file.replace(encrypted(_PENDING.dump_json(known)))
        else:
            file.remove()


def _read() -> dict[str, PendingSignIn]:
    try:
        known = _PENDING.validate_json(decrypted(state_file("pending-sign-ins").read()))
    except (FileNotFoundError, ValidationError, OtherKeyError):  # of another version or key: they are begun again
        return {}
    return {state: one for state, one in known.items() if one.expires > time.time()}


# Its errors are raised as well; the traceback would show what a server says as it is.
logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())
logging.getLogger("mcp.client.auth").propagate = False

_ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "callsheet", "version": "0.1.0"}}
_HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _ABOUT}
_HEADERS = {"accept": "application/json, text/event-stream"}
_TIMEOUT = 30.0
_LARGEST = 1_000_000


async def browser_sign_in(
    server: str, open_page: Callable[[str], Awaitable[None]], *, port: int = 0, seconds: float = 300.0, **more: Any
) -> Tokens:
    """Signs in as ``SignIn`` does, with a redirect to a loopback address (RFC 8252); port 0 means any free port."""
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
            return await SignIn(server, redirect, open_page, seconds=seconds, **more).tokens()
        finally:
            web.should_exit = True
            await asyncio.to_thread(serving.join)


@dataclass(slots=True)
class SignIn:
    """Signs a person in; serves the MCP SDK as its ``TokenStorage`` and has its handlers.

    Attributes:
        redirect: Where the answer is to come: a route ``callback``, of any process with the same store and key.
        open_page: Shows the authorization server's page to the person.
        client: A client that was registered before; None registers one.
        scope: Scopes to ask for; if empty, those that the server names, and those that were missing in the last
            sign-in.
        browser: As in ``PendingSignIn``.
        hide: Removes the secrets of the server's address from errors.
        seconds: How long to wait for the person.
    """

    server: str
    redirect: str
    open_page: Callable[[str], Awaitable[None]]
    user: str = ""
    client: OAuthClientInformationFull | None = None
    scope: str = ""
    browser: str = ""
    hide: Callable[[str], str] = str
    seconds: float = LASTS
    _auth: OAuthClientProvider = field(init=False)
    _home: httpx2.URL = field(init=False)
    _page: httpx2.URL = field(init=False)
    _until: float = field(init=False, default=0.0)
    _opening: asyncio.Future[None] | None = field(init=False, default=None)
    _issued: Tokens | None = field(init=False, default=None)

    async def tokens(self) -> Tokens:
        """Signs in and stores the tokens: discovery, registration, consent in a browser, and exchange of the code.

        Raises:
            SignInError: Of whatever went wrong with server, person or time.
            SettingsError: There is no key to encrypt the tokens.
            OSError: They cannot be stored.
        """
        await asyncio.to_thread(encrypted, b"")  # without a key, nobody is sent to a page
        if not self.scope:
            with suppress(SettingsError):  # the sign-in replaces what cannot be read
                before = await asyncio.to_thread(StoredTokens(self.server, self.user).read)
                self.scope = before.wanted if before else ""
        if self.scope:
            check_scope(self.scope)
        problem = "the sign-in was cancelled"
        try:
            tokens = await self._flow()
            problem = ""
        except (CallsheetError, OSError) as error:
            problem = self.hide(str(error))
            if problem != str(error):
                raise SignInError(problem) from None
            raise
        finally:
            if self._opening is not None:
                self._opening.cancel()
            if self._until:
                await asyncio.to_thread(end_sign_in, self._page.params["state"], problem)
        return tokens

    async def _flow(self) -> Tokens:
        """Sends the requests of the SDK's flow up to the one that would greet the server with the token."""
        failed = f"signing in to {self.server} failed"
        try:
            self._home = httpx2.URL(self.server)
            metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(self.redirect)], client_name="Callsheet")
            self._auth = OAuthClientProvider(self.server, metadata, self, self._open, self._answer)
            request = httpx2.Request("POST", self._home, json=_HELLO, headers=_HEADERS)
            client = BoundedHttpClient("openapi", _LARGEST, timeout=_TIMEOUT)
            async with client as http, aclosing(self._auth.async_auth_flow(request)) as flow:
                request = await anext(flow)
                while self._issued is None:
                    self._check(request)
                    answer = await self._sent(http, request)
                    try:
                        request = await flow.asend(answer)
                    except StopAsyncIteration:
                        status = f"(status {answer.status_code})"
                        raise SignInError(f"{self.server} does not require a sign-in {status}") from None
                return self._issued
        except OAuthTokenError as error:  # the rest of it may repeat a token
            raise SignInError(f"{failed}: {shown(str(error).partition(':')[0])}") from None
        except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError, Fault) as error:
            raise SignInError(f"{failed}: {_said(error)}") from error

    async def _sent(self, http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; returns the bounded answer, of the server itself only its headers.

        An API that does not know the greeting of MCP counts as one that asks for sign-in. The SDK registers a client
        for the scopes that the server asks for, and asks for those: here, for ``scope``.
        """
        answer = await http.send(request, stream=True)
        try:
            if request.url != self._home:
                await answer.aread()
            elif answer.is_client_error:
                answer.status_code = 401
                if self.scope:
                    asked = answer.headers.get("www-authenticate", "Bearer")
                    answer.headers["www-authenticate"] = f'Bearer scope="{self.scope}", {asked}'
        finally:
            await answer.aclose()
        return answer

    def _check(self, request: httpx2.Request) -> None:
        """Raises an error for unsafe addresses, and for clients and codes that would go to unpublished addresses.

        The SDK follows redirects within an origin, and registers clients with a server that does not offer it.
        """
        check_safe(self._home.host, str(request.url))
        if request.method != "POST" or request.url == self._home:
            return
        metadata = self._metadata()
        if request.url in (httpx2.URL(str(metadata.token_endpoint)), httpx2.URL(str(metadata.registration_endpoint))):
            return
        if metadata.registration_endpoint is None and self.client is None:
            raise ValueError(
                "its authorization server does not register clients: name a registered client with --client-id"
            )
        address = request.url.copy_with(query=None)
        raise ValueError(f"its authorization server redirects to {address}, which its metadata do not name")

    def _metadata(self) -> OAuthMetadata:
        """Returns the metadata of the authorization server; without it, the SDK guesses addresses and assumes PKCE."""
        metadata = self._auth.context.oauth_metadata
        if metadata is None:
            raise ValueError("the server names no authorization server, or that one publishes no metadata")
        if "S256" not in (metadata.code_challenge_methods_supported or ()):
            raise ValueError("its authorization server does not announce PKCE (code_challenge_methods_supported, S256)")
        return metadata

    async def get_tokens(self) -> OAuthToken | None:
        """Returns None, because older tokens are not used."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Stores the tokens."""
        metadata = self._metadata()
        if self.client is None:
            raise ValueError("no OAuth client was registered at the authorization server")
        self._issued = Tokens(
            server=self.server,
            user=self.user,
            tokens=tokens,
            expires=calculate_token_expiry(tokens.expires_in),
            client=self.client,
            issuer=str(metadata.issuer),
            token_endpoint=str(metadata.token_endpoint),
            resource=self._page.params.get("resource"),
        )
        await asyncio.to_thread(StoredTokens(self.server, self.user).write, self._issued)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Returns the client that is registered already, if any."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Stores the client that has just been registered."""
        self.client = client_info

    async def _open(self, page: str) -> None:
        for address in (page, str(self._metadata().token_endpoint)):
            check_safe(self._home.host, address)
            if "@" in urlsplit(address).netloc:
                raise ValueError("one of its addresses contains a user name, which could be mistaken for a host")
        self._page = httpx2.URL(page)
        self._until = time.time() + self.seconds
        pending = PendingSignIn(user=self.user, browser=self.browser, expires=self._until)
        await asyncio.to_thread(await_answer, self._page.params["state"], pending)
        # Beside this: a browser of the terminal is there until its user ends it.
        self._opening = asyncio.ensure_future(self.open_page(page))

    async def _answer(self) -> AuthorizationCodeResult:
        while (known := await asyncio.to_thread(pending_sign_in, self._page.params["state"])) is not None:
            answer = known.answer
            if answer is not None:
                break
            if self._opening is not None and self._opening.done():
                self._opening.result()
            await asyncio.sleep(PAUSE)
        else:
            if time.time() < self._until:
                dropped = f"was dropped: {MOST} later sign-ins of the same user took its place"
                raise SignInError(f"the sign-in to {self.server} {dropped}")
            raise SignInError(f"nobody signed in to {self.server} within {self.seconds:g} s")
        if "error" in answer:
            refusal = f"{answer['error']} {answer.get('error_description', '')}"
            raise OAuthFlowError(f"the authorization server refused: {refusal}")
        return AuthorizationCodeResult(code=answer.get("code", ""), state=answer["state"], iss=answer.get("iss"))


def _said(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"an answer is malformed: {error.errors(include_input=False)[0]['msg']}"
    return " ".join(shown(str(error), most=300).split()) or type(error).__name__
