"""Tools that a client sees directly, and how it learns that they changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import types

from callsheet.agents.registry.binding import names_of
from callsheet.graphs import Agent, Catalog, Tool
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer
from callsheet.orchestrator.server.gateway.shown_tools import DirectTools, definition
from gateway_desk import Desk

OWN = ("find_tools", "read_tools", "call_tool")
CATALOG = Catalog(
    agents=tuple(
        Agent(id=agent, tools=tuple(Tool(agent=agent, name=name) for name in ("search", f"only_{agent}", "b_search")))
        for agent in ("a", "b", "a_b")
    )
)


def shown(tools: DirectTools) -> dict[str, str]:
    return {name: tool.id for name, tool in tools.named("s", CATALOG).items()}


def test_new_tools_replace_those_that_were_found_longest_ago() -> None:
    tools = DirectTools(2, OWN)
    assert tools.show("s", ["a/only_a"])
    assert tools.show("s", ["b/only_b"])
    assert not tools.show("s", ["a/only_a"])  # it is there: the list stays, and so does a provider's cache
    assert tools.show("s", ["a/search"])
    assert shown(tools) == {"a_only_a": "a/only_a", "a_search": "a/search"}
    assert tools.named("another", CATALOG) == {}


def test_a_name_never_stands_for_two_tools() -> None:
    tools = DirectTools(1, OWN)
    tools.show("s", ["a/b_search"])
    assert shown(tools) == {"a_b_search": "a/b_search"}
    tools.show("s", ["a_b/search"])
    assert shown(tools) == {names_of("a_b", "search")[-1]: "a_b/search"}
    tools.show("s", ["a/b_search"])
    assert shown(tools) == {"a_b_search": "a/b_search"}


def test_none_are_shown_without_the_option() -> None:
    tools = DirectTools(0, OWN)
    assert not tools.show("s", ["a/search"])
    assert shown(tools) == {}


def test_an_odd_definition_becomes_a_valid_one() -> None:
    odd = Tool(
        agent="a",
        name="odd",
        title="t" * 100_000,
        input_schema={"type": ["object", "null"]},
        annotations={"readOnlyHint": "sometimes", "title": 5, "destructiveHint": True},
    )
    shown = definition("odd", odd)
    assert shown.annotations == types.ToolAnnotations(destructive_hint=True)
    assert shown.input_schema == {"type": "object", "properties": {}}
    assert len(shown.title or "") <= 201


@pytest.mark.server
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_is_told_and_calls_them(desk: Desk, mode: str) -> None:
    server = GatewayServer(desk.gateway, lambda context: Caller("direct"), direct=2).server
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    async with desk.client(mode, server=server, message_handler=hear) as client:
        listening = asyncio.create_task(_listen(client)) if mode == "auto" else None
        before = [tool.name for tool in (await client.list_tools()).tools]
        if listening:
            await asyncio.sleep(0.2)
        await client.call_tool("find_tools", {"query": "the length of a name", "tools": 2})
        async with asyncio.timeout(10):
            await changed.wait()
        after = {tool.name: tool for tool in (await client.list_tools()).tools}
        called = await client.call_tool("works_measure", {"name": "Oslo"})
        if listening:
            listening.cancel()
    assert before == list(OWN)
    assert [*after][:3] == before
    assert after["works_measure"].input_schema["required"] == ["name"]
    assert called.structured_content == {"length": 4}


async def _listen(client: Any) -> None:
    async with client.listen(tools_list_changed=True) as changes:
        async for _ in changes:
            pass
