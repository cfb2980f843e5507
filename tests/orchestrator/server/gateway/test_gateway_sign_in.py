"""A call through the gateway whose server needs a sign-in: it fails with the page, and works after that."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from callsheet.agents import ToolRegistry
from callsheet.agents.servers.oauth.addresses import serve_at
from callsheet.orchestrator.server.gateway.catalog_gateway import Gateway
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer
from callsheet.orchestrator.server.gateway.serving import TokenFile, http_app, http_client, one_client
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings
from chromium import Browser, opened
from local_gateway import said
from signed_in_server import SignedInServer, served, signed_in_server, tickets_of

pytestmark = pytest.mark.server
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
WHO = {"tool": "tickets/whoami"}


@pytest.fixture
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignedInServer]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_KEY", "k" * 32)
    with signed_in_server() as started:
        yield started


@pytest.fixture
def gateway(tickets: SignedInServer, minilm: MiniLMEmbeddings) -> Iterator[Gateway]:
    loaded = tickets_of(tickets)
    registry = ToolRegistry.from_catalog(loaded)
    yield Gateway(AgentGraphRetriever.from_catalog(loaded, index=":memory:", embeddings=minilm), registry)
    registry.close()


@pytest.fixture
def url(gateway: Gateway, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The gateway over HTTP, for two users; or for whoever reaches this machine."""
    users = getattr(request, "param", ("bert", "carla"))
    entries = [{"sha256": hashlib.sha256(user.encode()).hexdigest(), "user": user} for user in users]
    (tmp_path / "tokens.json").write_text(json.dumps({"tokens": entries}))
    tokens = TokenFile(tmp_path / "tokens.json") if users else None
    app = http_app(GatewayServer(gateway, http_client), url="http://127.0.0.1/mcp", tokens=tokens)
    with served(app) as origin:
        serve_at(origin)
        yield origin


async def called(url: str, mode: Any, user: str = "") -> str:
    headers = {"authorization": f"Bearer {user}"} if user else {}
    transport = streamable_http_client(f"{url}/mcp", http_client=httpx2.AsyncClient(headers=headers, timeout=60))
    async with Client(transport, mode=mode) as client:
        return said(await client.call_tool("call_tool", WHO))


async def begun(browser: httpx2.AsyncClient, url: str, user: str = "", **body: str) -> httpx2.Response:
    """What the page does when its button is pressed."""
    headers = {"x-callsheet-key": "page", **({"authorization": f"Bearer {user}"} if user else {})}
    return await browser.post(f"{url}/callsheet/api/sign-in", json={"agent": "tickets", **body}, headers=headers)


@ERAS
async def test_two_users_of_one_gateway_hold_two_tokens(url: str, tickets: SignedInServer, mode: Any) -> None:
    for user in ("bert", "carla"):
        tickets.authorization.person = user
        assert f"sign in at {url}/callsheet/sign-in?agent=tickets" in await called(url, mode, user)
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            page = (await begun(browser, url, user)).json()["url"]
            assert httpx2.URL(page).params["redirect_uri"] == f"{url}/callsheet/sign-in/callback"
            assert "Signed in" in (await browser.get(page)).text
        assert await called(url, mode, user) == user
    assert await called(url, mode, "bert") == "bert"


async def test_a_victim_who_gets_the_address_of_another_user_signs_nobody_in(url: str, tickets: SignedInServer) -> None:
    async with httpx2.AsyncClient() as eve, httpx2.AsyncClient(follow_redirects=True) as anna:
        answer = await begun(eve, url, "bert")
        cookie = answer.headers["set-cookie"].lower()
        assert all(part in cookie for part in ("httponly", "samesite=lax", "path=/callsheet/sign-in", "max-age=600"))
        refused = await anna.get(answer.json()["url"])
    assert (refused.status_code, "another browser" in refused.text) == (400, True)
    assert tickets.authorization.issued == []


async def test_the_page_and_its_script_are_there_for_everybody(url: str) -> None:
    async with httpx2.AsyncClient() as browser:
        page = await browser.get(f"{url}/callsheet/sign-in", params={"agent": "<b>x"})
        script = await browser.get(f"{url}/callsheet/sign-in/page.js")
    assert "<script src=" in page.text
    assert "<b>" not in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "api/sign-in" in script.text


async def test_a_person_signs_in_in_a_browser(url: str, tickets: SignedInServer) -> None:
    """At another name of the server, whose cookies would not come back, the page leads to the one that it knows."""
    tickets.authorization.person = "bert"

    def signed_in() -> str:
        with contextmanager(opened)() as browser:
            return signed_in_with(browser)

    def signed_in_with(browser: Browser) -> str:
        def give(token: str) -> None:
            browser.run(f"document.querySelector('input').value = {token!r}")
            browser.run("document.querySelector('form').requestSubmit()")

        browser.show(f"{url.replace('127.0.0.1', 'localhost')}/callsheet/sign-in?agent=tickets")
        browser.wait("document.querySelector('h1').textContent === 'Sign in to tickets'")
        give("wrong")
        browser.wait("document.querySelector('[role=alert]').textContent.includes('access token')")
        give("bert")
        browser.wait(f"location.href === {url!r} + '/callsheet/sign-in?agent=tickets'")
        browser.wait("document.querySelector('h1').textContent === 'Sign in to tickets'")
        give("bert")
        browser.wait("location.pathname === '/callsheet/sign-in/callback' && document.body.innerText")
        return str(browser.run("document.body.innerText"))

    assert "Signed in" in await asyncio.to_thread(signed_in)
    assert await called(url, "auto", "bert") == "bert"


@pytest.mark.parametrize(
    ("user", "body", "change", "status", "why"),
    [
        ("", {}, {}, 401, "access token"),
        ("eve", {}, {}, 401, "access token"),
        ("bert", {"agent": "other"}, {}, 400, "no agent 'other'"),
        ("bert", {"agent": ""}, {}, 400, "at least 1 character"),
        ("bert", {}, {"x-callsheet-key": None}, 403, "no key"),
        ("bert", {}, {"origin": "https://evil.example"}, 403, "evil.example"),
    ],
    ids=["nobody", "unknown token", "agent", "empty", "no page", "another site"],
)
async def test_only_users_can_begin_a_sign_in_and_only_on_the_page(
    url: str,
    tickets: SignedInServer,
    user: str,
    body: dict[str, str],
    change: dict[str, str | None],
    status: int,
    why: str,
) -> None:
    headers = {"x-callsheet-key": "page", "authorization": f"Bearer {user}" if user else None, **change}
    async with httpx2.AsyncClient() as browser:
        given: Any = {name: value for name, value in headers.items() if value}
        answer = await browser.post(f"{url}/callsheet/api/sign-in", json={"agent": "tickets", **body}, headers=given)
    assert (answer.status_code, why in answer.text) == (status, True)


@pytest.mark.parametrize("url", [()], indirect=True, ids=["no users"])
async def test_without_users_only_a_browser_of_this_machine_signs_in(
    url: str, tickets: SignedInServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        monkeypatch.setenv("CALLSHEET_URL", "https://calls.example.com")
        refused = await begun(browser, url)
        assert (refused.status_code, "does not know its users" in refused.text) == (403, True)
        monkeypatch.delenv("CALLSHEET_URL")
        assert "Signed in" in (await browser.get((await begun(browser, url)).json()["url"])).text
    assert await called(url, "auto") == "anna"


@pytest.mark.parametrize(
    ("query", "userinfo", "resource", "why"),
    [
        ("?key=${TICKETS_KEY}", "", "/mcp?key=canary-4711-key", "contains a secret"),
        ("?key=${TICKETS_KEY}", "", "/other", "does not match"),
        ("", "anna:hidden-word@", "/mcp", "a user or a password"),
    ],
    ids=["secret", "secret in an error", "password"],
)
@pytest.mark.parametrize("url", [()], indirect=True, ids=["no users"])
async def test_a_sign_in_that_would_give_something_away_does_not_begin(
    url: str,
    gateway: Gateway,
    tickets: SignedInServer,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    userinfo: str,
    resource: str,
    why: str,
) -> None:
    monkeypatch.setenv("TICKETS_KEY", "canary-4711-key")
    tickets.changes["/.well-known/oauth-protected-resource/mcp"] = {"resource": f"{tickets.origin}{resource}"}
    address = f"{tickets.url.replace('://', f'://{userinfo}')}{query}"
    config: Any = gateway.registry.loaded.connections["tickets"]
    connections = {"tickets": config.model_copy(update={"url": address})}
    gateway.registry.follow(replace(gateway.registry.loaded, connections=connections))
    async with httpx2.AsyncClient() as browser:
        refused = await begun(browser, url)
    assert (refused.status_code, why in refused.text) == (400, True)
    assert "canary" not in refused.text
    assert "hidden-word" not in refused.text


@ERAS
async def test_a_gateway_without_a_page_names_the_command(gateway: Gateway, tickets: SignedInServer, mode: Any) -> None:
    async with Client(GatewayServer(gateway, one_client()).server, mode=mode) as client:
        called = await client.call_tool("call_tool", WHO)
    assert called.is_error
    assert said(called).endswith(f"run `callsheet sign-in {tickets.url}`")
