"""Signs users in on a server: its page leads to the authorization server, which sends the browser back."""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from callsheet.agents import ToolRegistry
from callsheet.agents.safety.secrets import named_in, of_server
from callsheet.agents.servers.oauth.addresses import CALLBACK, PAGE, is_loopback, server_address
from callsheet.agents.servers.oauth.sign_in import HEADERS, LASTS, SignIn, callback, cookie_of
from callsheet.graphs import SettingsError, UnknownNameError, User
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.orchestrator.server.page_requests import Body, ForbiddenError, body_of, check_key

BEGIN = PAGE.replace("sign-in", "api/sign-in")
"""The route that starts a sign-in."""
_NO_USERS = (
    "this server does not know its users, so a sign-in would be for everybody: whoever runs it can sign in on the "
    "command line"
)
_POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
_HEADERS = {**HEADERS, "content-security-policy": _POLICY}
_HTML = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign in</title>
<form><h1>Sign in</h1>
<p><label>Your access token of this server, if it asks for one <input type="password" autocomplete="off"></label></p>
<p><button>Go on to the authorization server</button></p></form>
<p role="alert"></p><script src="sign-in/page.js"></script></html>
"""
_SCRIPT = """const agent = new URLSearchParams(location.search).get("agent") ?? "";
document.querySelector("h1").textContent = `Sign in to ${agent}`;
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = document.querySelector("input").value.trim();
  const headers = { "Content-Type": "application/json", "X-Callsheet-Key": "page" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch("api/sign-in", { method: "POST", headers, body: JSON.stringify({ agent }) });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) document.querySelector("[role=alert]").textContent = told.error ?? told.detail ?? answer.statusText;
  else if (new URL(told.server).host === location.host) location.assign(told.url);
  else location.assign(`${told.server}/callsheet/sign-in${location.search}`);
});
"""
_GOING: set[asyncio.Task[Any]] = set()


class _Begin(Body):
    agent: Annotated[str, Field(min_length=1, max_length=500)]


def public_routes() -> list[Route]:
    """Returns the routes that need no credentials.

    These are the sign-in page, its script, and the address to which the authorization server sends the browser back.
    """
    return [
        Route(PAGE, lambda _: Response(_HTML, media_type="text/html", headers=_HEADERS)),
        Route(f"{PAGE}/page.js", lambda _: Response(_SCRIPT, media_type="text/javascript", headers=_HEADERS)),
        Route(CALLBACK, callback),
    ]


async def begin(registry: ToolRegistry, user: User, request: Request) -> JSONResponse:
    """Starts a sign-in for the browser that sends the request.

    Only that browser can finish it, so nobody gets another user's tokens.

    Raises:
        RefusedError: The request is not from the page.
        UnknownNameError: The user may call no such agent.
        CallsheetError: It cannot begin, or it would give something away.
    """
    check_key(request)
    agent = (await body_of(request, _Begin)).agent
    known = registry.catalog.by_id.get(agent)
    config = registry.loaded.connections.get(agent)
    if known is None or not registry.permitted([tool.id for tool in known.tools], user):
        raise UnknownNameError(f"there is no agent {agent!r} that you may call")
    if not isinstance(config, ServerConfig) or not config.url:
        raise SettingsError(f"agent {agent!r} does not require users to sign in")
    address = server_address()
    full = config.expanded(os.environ)
    server = full.url or ""
    if not user.id and not is_loopback(address):
        raise ForbiddenError(_NO_USERS)
    if "@" in urlsplit(server).netloc:
        raise SettingsError(f"the address of agent {agent!r} contains a user or a password: remove them")
    browser = secrets.token_urlsafe(32)
    hide = of_server(full, named_in(config, os.environ)).text
    opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open_page(page: str) -> None:
        if hide(page) != page:
            raise SettingsError(
                f"the address of the sign-in page of agent {agent!r} contains a secret, which the authorization server "
                "would show"
            )
        opened.set_result(page)

    flow = SignIn(server, f"{address}{CALLBACK}", open_page, user=user.id, browser=browser, hide=hide)
    going = asyncio.create_task(flow.tokens())
    _GOING.add(going)
    going.add_done_callback(_GOING.discard)
    await asyncio.wait((going, opened), return_when=asyncio.FIRST_COMPLETED)
    if not opened.done():
        going.result()
    going.add_done_callback(lambda task: task.cancelled() or task.exception())  # the callback tells it
    answer = JSONResponse({"url": opened.result(), "server": address}, headers={"cache-control": "no-store"})
    kind: Any = {"path": PAGE, "httponly": True, "samesite": "lax", "secure": address.startswith("https:")}
    answer.set_cookie(cookie_of(opened.result()), browser, max_age=int(LASTS), **kind)
    return answer
