"""The interfaces as LangChain tools, and as an MCP server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.tools import BaseTool, ToolException
from mcp import Client

from callsheet.graphs import Catalog, agent_from_listing
from callsheet.orchestrator.cli.documents import listed, tool_server
from callsheet.retrievers.documents import DocumentIndex, DocumentTools
from callsheet.retrievers.selection.budget import SchemaTokens

Made = Callable[..., DocumentIndex]


def named(tools: list[BaseTool]) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in tools}


def called(tool: BaseTool, **args: Any) -> Any:
    return tool.invoke({"type": "tool_call", "name": tool.name, "args": args, "id": "1"})


def test_the_three_have_the_papers_parameters(made: Made) -> None:
    tools = DocumentTools(made()).as_tools()
    assert {tool.name: list(tool.args) for tool in tools} == {
        "keyword_search": ["keywords", "top_k"],
        "semantic_search": ["query", "top_k"],
        "chunk_read": ["chunk_ids", "neighbours"],
    }
    assert tools[0].args["top_k"]["default"] == 5
    agent, left_out = agent_from_listing(
        "documents", [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed(tools)]
    )
    assert left_out == ()
    assert SchemaTokens(Catalog(agents=(agent,))).count(tool.id for tool in agent.tools) < 600


def test_the_tracker_goes_from_call_to_call(made: Made) -> None:
    tools = DocumentTools(made())
    read = named(tools.as_tools())["chunk_read"]
    first, second = called(read, chunk_ids=["leave.md#1"]), called(read, chunk_ids=["leave.md#1"])
    assert "25 days" in first.text
    assert list(first.artifact["read"]) == ["leave.md#1"] == list(tools.read)
    assert "read this chunk before" in second.text
    assert second.artifact == {"tokens": 0, "chunks": ["leave.md#1"], "read": {}}


@pytest.mark.parametrize("keywords", ["leave", '["leave"]', ["leave"]])
def test_a_list_that_a_small_model_wrote_as_text_is_understood(made: Made, keywords: Any) -> None:
    found = called(named(DocumentTools(made()).as_tools())["keyword_search"], keywords=keywords)
    assert found.text.startswith("[leave.md#1] holds leave")


def test_a_mistake_is_a_tool_exception_in_words(made: Made) -> None:
    with pytest.raises(ToolException, match="top_k must be at least 1, not 0"):
        named(DocumentTools(made()).as_tools())["semantic_search"].invoke({"query": "leave", "top_k": 0})


def test_naive_is_one_tool(made: Made) -> None:
    (tool,) = DocumentTools(made()).as_tools(naive=True)
    assert tool.name == "search_and_read"
    assert "25 days" in called(tool, query="paid leave a year").text


async def test_an_mcp_client_searches_reads_and_errs(made: Made) -> None:
    async with Client(tool_server("documents", DocumentTools(made()).as_tools())) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "keyword_search",
            "semantic_search",
            "chunk_read",
        ]
        found = await client.call_tool("keyword_search", {"keywords": ["allowance"]})
        first = await client.call_tool("chunk_read", {"chunk_ids": ["deep/travel.txt#1"]})
        again = await client.call_tool("chunk_read", {"chunk_ids": ["deep/travel.txt#1"]})
        wrong = await client.call_tool("chunk_read", {"chunk_ids": []})
    said = [result.content[0].text for result in (found, first, again, wrong)]  # type: ignore[union-attr]
    assert said[0].startswith("[deep/travel.txt#1] holds allowance: The allowance for meals")
    assert "Trains are booked" in said[1]
    assert "read this chunk before" in said[2]
    assert wrong.is_error
    assert "at least one chunk id" in said[3]
