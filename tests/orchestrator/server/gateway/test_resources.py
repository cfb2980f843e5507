"""Resources and prompts behind the tools of the gateway, driven by the SDK's client of both eras of the protocol."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import types

from callsheet.graphs import Policy
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer
from callsheet.retrievers import MiniLMEmbeddings
from local_gateway import APPROVED, LocalGateway, answering, said

pytestmark = pytest.mark.server
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
INVENTORY = "works/resource:note://inventory"
DIARY = "works/template:note://diary/{day}"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, minilm: MiniLMEmbeddings) -> Iterator[LocalGateway]:
    made = LocalGateway(tmp_path_factory.mktemp("two"), minilm, names=("works",), trusted=False)
    yield made
    made.registry.close()


@ERAS
async def test_a_search_finds_resources_and_prompts_beside_tools(local: LocalGateway, mode: str) -> None:
    async with local.client(mode) as client:
        drawer = said(await client.call_tool("find_tools", {"query": "in which drawer of the workshop is the saw?"}))
        length = said(await client.call_tool("find_tools", {"query": "how long is this name?"}))
    selection = await local.gateway.find("how long is this name?", Caller("x"))
    assert "works/resource:note://inventory: What lies in the workshop" in drawer
    found = length.partition("\n\n")[0].splitlines()
    assert [line.split(":")[0] for line in found] == [tool.id for tool in selection.tools]


@ERAS
async def test_resources_and_prompts_are_read_with_the_tools_of_the_gateway(local: LocalGateway, mode: str) -> None:
    async with local.client(mode) as client:
        described = await client.call_tool("read_tools", {"tools": ["works/prompt:report", DIARY]})
        read = await client.call_tool("call_tool", {"tool": INVENTORY})
        day = await client.call_tool("call_tool", {"tool": DIARY, "arguments": {"day": "1 May"}})
        asked = {"tool": "works/prompt:report", "arguments": {"topic": "owls"}}
        report = await client.call_tool("call_tool", asked)
        greeting = await client.call_tool("call_tool", {"tool": "works/prompt:greeting"})
        wrong = await client.call_tool("call_tool", {"tool": "works/prompt:report"})
        (_, pixel) = (await client.call_tool("call_tool", {"tool": "works/resource:note://pixel"})).content
    prompt, template = map(json.loads, said(described).splitlines())
    assert prompt["inputSchema"]["required"] == ["topic"]
    assert template["inputSchema"]["required"] == ["day"]
    assert said(read) == "saw: drawer 3"
    assert read.structured_content is None
    assert said(day) == "on 1 May it rained"
    assert said(report) == "Write a short report about owls."
    assert said(greeting) == "[user]\nGood day.\n[assistant]\nGood day to you."
    assert isinstance(pixel, types.ImageContent)
    assert base64.b64decode(pixel.data).startswith(b"\x89PNG")
    assert wrong.is_error
    assert "'topic' is a required property" in said(wrong)


@ERAS
async def test_a_template_with_arguments_is_approved_like_a_call(two: LocalGateway, mode: str) -> None:
    asked: list[types.ElicitRequestFormParams] = []
    day = await two.call(DIARY, mode, answering(APPROVED, asked), day="monday")
    report = await two.call("works/prompt:report", mode, answering(APPROVED, asked), topic="owls")
    refused = await two.call(DIARY, mode, answering(types.ElicitResult(action="decline")), day="monday")
    unasked = await two.call("works/prompt:report", mode, topic="owls")
    assert (said(day), said(report)) == ("on monday it rained", "Write a short report about owls.")
    assert (refused.is_error, "a person refused this call" in said(refused)) == (True, True)
    assert (unasked.is_error, "this client cannot ask one" in said(unasked)) == (True, True)
    first, second = (one.message for one in asked)
    assert ("works/template" in first, "works/prompt" in second) == (True, True)


async def test_a_policy_hides_resources_and_prompts(tmp_path: Path, minilm: MiniLMEmbeddings) -> None:
    policy = Policy(default="allow", deny=("works/resource:*", "works/prompt:report", DIARY))
    made = LocalGateway(tmp_path, minilm, policy=policy)
    try:
        async with made.client() as client:
            found = said(await client.call_tool("find_tools", {"query": "in which drawer of the workshop is the saw?"}))
            called = [
                said(await client.call_tool("call_tool", {"tool": tool, "arguments": given}))
                for tool, given in ((INVENTORY, {}), (DIARY, {"day": "monday"}), ("works/resource:note://nonsense", {}))
            ]
    finally:
        made.registry.close()
    assert "resource:" not in found
    assert all(answer.startswith("no tool 'works/") for answer in called)
    assert made.log == []


@ERAS
async def test_a_client_is_notified_of_changed_resources_and_prompts(local: LocalGateway, mode: str) -> None:
    server = GatewayServer(local.gateway, lambda context: Caller("told")).server
    told: list[str] = []

    async def hear(message: Any) -> None:
        told.append(type(message).__name__)

    loaded = local.loaded
    async with local.client(mode, server=server, message_handler=hear) as client:
        listening = asyncio.create_task(_listen(client)) if mode == "auto" else None
        assert (await client.call_tool("call_tool", {"tool": INVENTORY})).is_error is False
        await asyncio.sleep(0.2)
        local.registry.follow(type(loaded)(loaded.catalog, **{**loaded.details, "resources": {}}, label=loaded.label))
        async with asyncio.timeout(10):
            while "ToolListChangedNotification" not in told:
                await asyncio.sleep(0.02)
        assert (await client.call_tool("call_tool", {"tool": INVENTORY})).is_error
        local.registry.follow(loaded)
        if listening:
            listening.cancel()


async def _listen(client: Any) -> None:
    async with client.listen(tools_list_changed=True) as changes:
        async for _ in changes:
            pass
