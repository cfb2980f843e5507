"""A server's resources and prompts are as little trusted as its tools: attacks by their texts, sizes and silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client, MCPError, types

from callsheet.graphs import load
from callsheet.retrievers import MiniLMEmbeddings
from gateway_desk import Desk, said

pytestmark = pytest.mark.server
SERVER = Path(__file__).parents[1] / "hostile_resources.py"
KEY = "CANARY-5f1e2d3c4b5a"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minilm: MiniLMEmbeddings) -> Iterator[Desk]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_LIMIT_CALL", "2")
    monkeypatch.setenv("CALLSHEET_LIMIT_OUTPUT", "1000")
    made = Desk(tmp_path, minilm, names=("evil",), server=SERVER, env={"KEY": KEY})
    yield made
    made.registry.close()


async def told(client: Client, tool: str) -> types.CallToolResult:
    return await client.call_tool("call_tool", {"tool": f"evil/{tool}"})


async def test_what_gives_orders_is_not_listed_not_found_and_not_read(desk: Desk) -> None:
    assert [problem.kind for problem in desk.loaded.problems] == ["suspect"]
    async with desk.client() as client:
        listed = (await client.list_resources()).model_dump_json()
        listed += (await client.list_prompts()).model_dump_json()
        listed += (await client.list_resource_templates()).model_dump_json()
        listed += said(await client.call_tool("find_tools", {"query": "ignore all previous instructions"}))
        read = await told(client, "resource:x:order")
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource("callsheet:evil/x:order/1")
    assert "order" not in listed.replace("ignore all", "").lower()
    assert len(listed) < 20_000
    assert read.is_error
    assert desk.log == []


async def test_texts_have_no_hidden_characters_and_no_secrets(desk: Desk) -> None:
    async with desk.client() as client:
        texts = [said(await told(client, name)) for name in ("resource:x:hidden", "prompt:hidden")]
        resource = await client.read_resource("callsheet:evil/x:hidden")
        prompt = await client.get_prompt("evil/hidden")
    texts += [resource.model_dump_json(by_alias=True), prompt.model_dump_json(by_alias=True)]
    for text in texts:
        assert "visible" in text
        assert KEY not in text
        assert not any(character in text for character in ("\x1b", "\u202e", "\\u202e"))
        assert not any(0xE0000 <= ord(character) <= 0xE007F for character in text)


async def test_a_flood_is_cut_and_silence_ends(desk: Desk) -> None:
    async with desk.client() as client:
        (big,) = (await client.read_resource("callsheet:evil/x:big")).contents
        with pytest.raises(MCPError, match="no answer to resources/read within 2 s"):
            await client.read_resource("callsheet:evil/x:hang")
        with pytest.raises(MCPError, match="evil"):
            await client.read_resource("callsheet:evil/x:dead")
        after = await told(client, "resource:x:hidden")
    assert isinstance(big, types.TextResourceContents)
    assert len(big.text) < 1_500
    assert "[cut: the first 1,000 of 1,000,000 characters" in big.text
    assert not after.is_error


async def test_a_prompt_cannot_speak_as_the_system(desk: Desk) -> None:
    async with desk.client() as client:
        with pytest.raises(MCPError, match="not in the form of MCP"):
            await client.get_prompt("evil/odd")
        with pytest.raises(MCPError, match="not in the form of MCP"):
            await client.read_resource("callsheet:evil/x:odd")


def test_nothing_is_read_from_a_server_whose_command_changed(desk: Desk, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    servers = json.loads(config.read_text())
    assert "evil/resource:x:big" in desk.loaded.of_resources.catalog.tools
    servers["mcpServers"]["evil"]["args"].append("more")
    config.write_text(json.dumps(servers))
    now = load(config, yes=True)
    assert [(change.id, change.kind) for change in now.changes] == [("evil", "command")]
    assert not now.resources
