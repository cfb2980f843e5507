"""A call through the gateway whose server needs a sign-in: the client opens the page, and the call goes on."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

from callsheet.agents import ToolRegistry
from callsheet.graphs import Agent, Catalog, Loaded, Tool
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from callsheet.orchestrator.server.gateway.catalog_gateway import Gateway
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer
from callsheet.orchestrator.server.gateway.serving import TokenFile, http_app, http_client, one_client
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings
from gateway_desk import said
from signed_in_server import SignedInServer, served, signed_in_server

pytestmark = pytest.mark.server
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
WHO = {"tool": "tickets/whoami"}
ACCEPT, DECLINE = types.ElicitResult(action="accept"), types.ElicitResult(action="decline")


@pytest.fixture
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignedInServer]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_KEY", "k" * 32)
    with signed_in_server() as started:
        yield started


@pytest.fixture
def gateway(tickets: SignedInServer, minilm: MiniLMEmbeddings) -> Iterator[Gateway]:
    hints = {"readOnlyHint": True, "idempotentHint": True}
    tool = Tool(agent="tickets", name="whoami", description="Who is signed in.", annotations=hints)
    config = ServerConfig(url=tickets.url, transport="http", callsheet=ServerOptions(trusted=True))
    loaded = Loaded(Catalog(agents=(Agent(id="tickets", tools=(tool,)),)), connections={"tickets": config})
    registry = ToolRegistry.from_catalog(loaded)
    yield Gateway(AgentGraphRetriever.from_catalog(loaded, index=":memory:", embeddings=minilm), registry)
    registry.close()


class Person:
    """Opens the pages that a client is given, and answers; ``late`` opens them after the client has agreed."""

    def __init__(self, *, agrees: bool = True, late: float = 0.0) -> None:
        self.agrees, self.late = agrees, late
        self.pages: list[str] = []
        self._code: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._opening: set[asyncio.Task[None]] = set()

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        if isinstance(params, types.ElicitRequestURLParams):
            self.pages.append(params.url)
            if not self.agrees:
                return DECLINE
            self._opening.add(asyncio.create_task(self._open(params.url)))
            return ACCEPT
        return types.ElicitResult(action="accept", content={"code": await self._code})

    async def _open(self, page: str) -> None:
        await asyncio.sleep(self.late)
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            answer = await browser.get(page)
        if not self._code.done():
            self._code.set_result(answer.text.partition("code ")[2].partition(".")[0])


@ERAS
@pytest.mark.parametrize("late", [0.0, 1.0])
async def test_a_client_opens_the_page_and_the_call_goes_on(
    gateway: Gateway, tickets: SignedInServer, mode: Any, late: float
) -> None:
    person = Person(late=late)
    async with Client(GatewayServer(gateway, one_client()).server, mode=mode, elicitation_callback=person) as client:
        called = await client.call_tool("call_tool", WHO)
        again = await client.call_tool("call_tool", WHO)
    assert said(called) == said(again) == "anna"
    (page,) = person.pages
    assert page.startswith(f"{tickets.origin}/authorize?")


@ERAS
async def test_whoever_declines_gets_the_reason(gateway: Gateway, tickets: SignedInServer, mode: Any) -> None:
    person = Person(agrees=False)
    async with Client(GatewayServer(gateway, one_client()).server, mode=mode, elicitation_callback=person) as client:
        called = await client.call_tool("call_tool", WHO)
    assert called.is_error
    assert "declined" in said(called)
    assert tickets.authorization.issued == []


@ERAS
async def test_an_authorization_server_that_refuses_ends_the_call(
    gateway: Gateway, tickets: SignedInServer, mode: Any
) -> None:
    tickets.authorization.deny = True
    person = Person()
    async with Client(GatewayServer(gateway, one_client()).server, mode=mode, elicitation_callback=person) as client:
        called = await client.call_tool("call_tool", WHO)
    assert called.is_error
    assert "access_denied" in said(called)
    assert len(person.pages) == 1


@ERAS
async def test_a_client_that_opens_no_pages_gets_the_command(
    gateway: Gateway, tickets: SignedInServer, mode: Any
) -> None:
    async with Client(GatewayServer(gateway, one_client()).server, mode=mode) as client:
        called = await client.call_tool("call_tool", WHO)
    assert called.is_error
    assert f"run `callsheet sign-in {tickets.url}`" in said(called)


@ERAS
async def test_two_users_of_one_gateway_hold_two_tokens(
    gateway: Gateway, tickets: SignedInServer, tmp_path: Path, mode: Any
) -> None:
    entries = [{"sha256": hashlib.sha256(user.encode()).hexdigest(), "user": user} for user in ("bert", "carla")]
    (tmp_path / "tokens.json").write_text(json.dumps({"tokens": entries}))
    server = GatewayServer(gateway, http_client)
    app = http_app(server, url="http://127.0.0.1/mcp", tokens=TokenFile(tmp_path / "tokens.json"))
    with served(app) as url:
        server.reached_at(url)
        for user in ("bert", "carla"):
            tickets.authorization.person = user
            person = Person()
            for _ in range(2):
                http = httpx2.AsyncClient(headers={"authorization": f"Bearer {user}"}, timeout=60)
                transport = streamable_http_client(f"{url}/mcp", http_client=http)
                async with Client(transport, mode=mode, elicitation_callback=person) as client:
                    assert said(await client.call_tool("call_tool", WHO)) == user
            (page,) = person.pages
            assert httpx2.URL(page).params["redirect_uri"] == f"{url}/callsheet/sign-in/callback"
