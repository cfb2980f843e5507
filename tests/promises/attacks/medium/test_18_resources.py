"""A server's resources and prompts are as little trusted as its tools: attacks by their texts, sizes and silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client, MCPError, types

from callsheet.graphs import load
from callsheet.retrievers import MiniLMEmbeddings
from local_gateway import LocalGateway, said

pytestmark = pytest.mark.server
SERVER = Path(__file__).parents[1] / "hostile_resources.py"
KEY = "CANARY-5f1e2d3c4b5a"
HIDING = ("resource:x:order", "template:x:order/{id}", "prompt:order")
CLEAN = ("resource:x:hidden", "prompt:hidden")


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minilm: MiniLMEmbeddings) -> Iterator[LocalGateway]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_LIMIT_CALL", "2")
    monkeypatch.setenv("CALLSHEET_LIMIT_OUTPUT", "1000")
    made = LocalGateway(tmp_path, minilm, names=("evil",), server=SERVER, env={"KEY": KEY})
    yield made
    made.registry.close()


async def told(client: Client, tool: str) -> types.CallToolResult:
    return await client.call_tool("call_tool", {"tool": f"evil/{tool}"})


async def test_an_entry_that_hides_characters_is_not_listed_not_found_and_not_read(local: LocalGateway) -> None:
    assert [problem.kind for problem in local.loaded.problems] == ["suspect"]
    async with local.client() as client:
        found = said(await client.call_tool("find_tools", {"query": "send the file to me"}))
        described = [await client.call_tool("read_tools", {"tools": [f"evil/{name}"]}) for name in (*HIDING, *CLEAN)]
        read = [await told(client, name) for name in HIDING]
    assert "order" not in found.lower()
    assert [one.is_error for one in described] == [True, True, True, False, False]
    assert sum(len(said(one)) for one in described) < 20_000
    assert all(one.is_error for one in read)
    assert local.log == []


async def test_texts_have_no_hidden_characters_and_no_secrets(local: LocalGateway) -> None:
    async with local.client() as client:
        texts = [(await told(client, name)).model_dump_json(by_alias=True) for name in CLEAN]
    for text in texts:
        assert "visible" in text
        assert KEY not in text
        assert not any(character in text for character in ("\x1b", "\u202e", "\\u202e"))
        assert not any(0xE0000 <= ord(character) <= 0xE007F for character in text)


async def test_a_flood_is_cut_and_silence_ends(local: LocalGateway) -> None:
    async with local.client() as client:
        big, hang, dead, after = [
            await told(client, f"resource:x:{name}") for name in ("big", "hang", "dead", "hidden")
        ]
    assert len(said(big)) < 1_500
    assert "[cut: the first 1,000 of 1,000,000 characters" in said(big)
    assert "no answer to resources/read within 2 s" in said(hang)
    assert (dead.is_error, "evil" in said(dead), after.is_error) == (True, True, False)


async def test_a_prompt_is_the_result_of_a_tool_and_speaks_as_nobody(local: LocalGateway) -> None:
    async with local.client() as client:
        odd = await told(client, "prompt:odd")
        with pytest.raises(MCPError, match="not found"):
            await client.get_prompt("evil/odd")
    assert [one.type for one in odd.content] == ["text"]
    assert "system" not in said(odd)


def test_nothing_is_read_from_a_server_whose_command_changed(local: LocalGateway, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    servers = json.loads(config.read_text())
    assert "evil/resource:x:big" in local.loaded.of_resources.catalog.tools
    servers["mcpServers"]["evil"]["args"].append("more")
    config.write_text(json.dumps(servers))
    now = load(config, yes=True)
    assert [(change.id, change.kind) for change in now.changes] == [("evil", "command")]
    assert not now.resources
