"""Where the answer of an authorization server comes: a route of Callsheet's server, or a port of this machine."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from callsheet.agents.safety.faults import named_in
from callsheet.agents.safety.secrets import of_server
from callsheet.agents.servers.background_loop import BackgroundLoop
from callsheet.agents.servers.oauth.authorization import LOOPBACK
from callsheet.agents.servers.oauth.pending_sign_ins import PendingSignIn, begin_sign_in, take_answer
from callsheet.agents.servers.oauth.stored_tokens import SignInError
from callsheet.graphs.catalog.errors import CallsheetError, SettingsError
from callsheet.graphs.catalog.formats.server_config import ServerConfig

PATH, VARIABLE = "/callsheet/sign-in/callback", "CALLSHEET_URL"
_LOG = logging.getLogger("callsheet")
_LOOP = BackgroundLoop("callsheet-sign-in")
_LOCK = threading.Lock()
_PORTS: dict[int, tuple[int, int]] = {}
_HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
_DONE = "Signed in. You can close this page, and continue the run."
_CONFIRM = (
    "Signed in. If it was you who began this, continue the run with the code {code}. "
    "Do not give the code to anybody: it lets them act in your name."
)


def redirect_address() -> str:
    """The address for the answer of an authorization server to a sign-in of a run.

    It is at ``CALLSHEET_URL``, the server's address as browsers know it; without that, at the address of
    ``langgraph dev``; outside of a LangGraph server, at a loopback address of this process.

    Raises:
        SettingsError: ``CALLSHEET_URL`` is not an address of https or of this machine, or a server lacks it.
        SignInError: This machine has no free port.
    """
    if named := os.environ.get(VARIABLE):
        return callback_at(named)
    if "LANGSERVE_GRAPHS" not in os.environ:  # LangGraph's servers set it
        return loopback_address()
    local = os.environ.get("LANGGRAPH_API_URL", "")
    if httpx2.URL(local).host in LOOPBACK:
        return callback_at(local)
    raise SettingsError(f"set {VARIABLE} to the address of this server as browsers know it, https://...")


def callback_at(server: str) -> str:
    """The address for answers at a server of Callsheet.

    Raises:
        SettingsError: It is not an address of https or of this machine.
    """
    try:
        url = httpx2.URL(server)
    except (httpx2.InvalidURL, ValueError):
        url = httpx2.URL("")
    if not url.host or (url.scheme != "https" and not (url.scheme == "http" and url.host in LOOPBACK)):
        raise SettingsError(f"the address of this server must be https://, or http:// of this machine: set {VARIABLE}")
    return f"{server.partition('?')[0].rstrip('/')}{PATH}"


def is_loopback(redirect: str) -> bool:
    """Whether an address for answers is one of this machine."""
    return httpx2.URL(redirect).host in LOOPBACK


def loopback_address(port: int = 0) -> str:
    """An address of this process for answers (RFC 8252), as long as the process lives; port 0 is any.

    Raises:
        SignInError: The port cannot be used.
    """
    with _LOCK:
        process, bound = _PORTS.get(port, (0, 0))
        if process != os.getpid():
            listener = _listener(port)
            app = Starlette(routes=[Route("/callback", callback)])
            server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
            _LOOP.submit(server.serve(sockets=[listener]))
            process, bound = _PORTS[port] = os.getpid(), listener.getsockname()[1]
    return f"http://127.0.0.1:{bound}/callback"


async def callback(request: Request) -> PlainTextResponse:
    """Takes the answer of an authorization server from the browser of a person."""
    try:
        taken = await run_in_threadpool(take_answer, dict(request.query_params))
    except SignInError as error:
        return PlainTextResponse(f"Not signed in: {error}.", 400, _HEADERS)
    except (CallsheetError, OSError) as error:
        _LOG.warning("a sign-in was not stored: %s", error)
        return PlainTextResponse("Not signed in: the answer cannot be stored; see the log.", 500, _HEADERS)
    if taken.problem:
        return PlainTextResponse(f"Not signed in: {taken.problem}. You can close this page.", headers=_HEADERS)
    return PlainTextResponse(_CONFIRM.format(code=taken.code) if taken.code else _DONE, headers=_HEADERS)


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


_NO_USERS = (
    "this server does not know its users, so a sign-in would be for everybody: whoever runs it can sign in on the "
    "command line"
)


async def sign_in_of_run(
    server: ServerConfig, environ: Mapping[str, str], *, user: str, run: str, address: str = ""
) -> PendingSignIn:
    """Begins the sign-in that a run needs, or finds the one that it waits for already.

    Args:
        server: The server, variables not expanded.
        environ: Variables for ``${VAR}``.
        user: The user of the run; empty for whoever runs the program.
        run: The run.
        address: Address of the server of Callsheet to which the answer is to come; empty: as configured.

    Raises:
        SignInError: It cannot begin; or a stranger could sign in for others.
        SettingsError: There is no key to encrypt it, or no address for the answer.
        CatalogError: A variable of the server is not set.
        OSError: It cannot be stored.
    """
    full = server.expanded(environ)
    redirect = callback_at(address) if address else redirect_address()
    if not user and not is_loopback(redirect):
        raise SignInError(_NO_USERS)
    if "@" in urlsplit(full.url or "").netloc:
        raise SignInError("its address contains a user and a password: remove them")
    begun = await begin_sign_in(full.url or "", redirect, user=user, run=run, confirmed=bool(user))
    page = begun.authorization.page
    if of_server(full, named_in(server, environ)).text(page) != page:
        raise SignInError("its address contains a secret, which the page of the authorization server would show")
    return begun
