"""A folder of documents as an agent: one line of an ``mcp.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import ToolException
from mcp import Client

from callsheet import AgentGraphRetriever, Settings, ToolRegistry, create_supervisor, load
from callsheet.agents.calls.call_context import within
from callsheet.agents.models.chat_models import chat_model
from callsheet.agents.servers.in_process import TOOL_MODEL, ToolModel
from callsheet.graphs.sources.loading import servers_in, starts_in
from callsheet.orchestrator.apps.arag_graph import READER, document_tool
from callsheet.orchestrator.server.gateway.catalog_gateway import Gateway
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer
from callsheet.orchestrator.server.gateway.serving import one_client
from callsheet.retrievers.documents.document_index import Library
from callsheet.retrievers.documents.document_reading import overview_of
from scripted_model import ScriptedModel, calls, unlabelled

HANDBOOK = {
    "leave.md": "# Leave\n\nEvery employee has 25 days of paid leave a year. Anna Berg signs requests for leave.\n",
    "travel.md": "# Travel expenses\n\nTrains are booked in second class. The allowance for meals is 28 euro a day.\n",
}

QUESTION = "How many days of paid leave are there a year?"
ANSWER = "Read and understood: 25 days. [leave.md#1]"
NAME = "test:reader"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes the handbook, and an ``mcp.json`` that names it."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_YES", "1")
    monkeypatch.delenv("CALLSHEET_INDEX", raising=False)
    monkeypatch.delenv("CALLSHEET_MODEL", raising=False)

    def written(entry: Any = None, **more: Any) -> Path:
        (tmp_path / "docs").mkdir(exist_ok=True)
        for name, text in HANDBOOK.items():
            (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {"handbook": entry or {"documents": "docs/"}, **more}}))
        return path

    return written


@pytest.fixture
def catalog(config: Callable[..., Path]) -> Path:
    return config()


def app(catalog: Path, **how: Any) -> Any:
    loaded = load(catalog)
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    registry = ToolRegistry(loaded.catalog, loaded.connections)
    return create_supervisor(loaded, retriever=retriever, registry=registry, **how).compile()


def asked(app: Any, settings: Settings | None = None, question: str = QUESTION) -> Any:
    return app.invoke({"messages": [{"role": "user", "content": question}]}, context=settings)


def test_a_folder_of_documents_is_an_agent_that_describes_them(config: Callable[..., Path]) -> None:
    loaded = load(config())
    (agent,) = loaded.catalog.agents
    (tool,) = agent.tools
    assert (agent.id, agent.description) == ("handbook", "Documents: Leave; Travel expenses.")
    assert tool.id == "handbook/search_documents"
    assert tool.description.startswith(
        "Answers questions about Leave; Travel expenses: searches the documents of handbook"
    )
    assert "allowance" in tool.description
    assert tool.annotations["readOnlyHint"]
    assert loaded.problems == ()


def test_the_description_of_a_folder_agent_can_be_given(config: Callable[..., Path]) -> None:
    loaded = load(config({"documents": "docs/", "description": "Rules for employees."}))
    assert loaded.catalog.agents[0].description == "Documents: Rules for employees."


def test_without_a_model_a_step_is_sent_to_a_folder_agent(catalog: Path) -> None:
    state = asked(app(catalog))
    (result,) = state["results"].values()
    assert (result["status"], result["agents"]) == ("done", ["handbook"])
    assert "25 days of paid leave a year. [leave.md#1]" in state["messages"][-1].text


def test_a_folder_agent_without_an_answer_gives_a_result(catalog: Path) -> None:
    state = asked(app(catalog), question="Who repaints the bicycles of the director?")
    (result,) = state["results"].values()
    assert (result["status"], result["agents"]) == ("needs_input", ["handbook"])
    assert [call["error"] for call in result["calls"]] == [""]
    assert "The documents do not answer this" in state["messages"][-1].text
    assert "25 days" not in state["messages"][-1].text


async def test_an_mcp_client_asks_a_folder_agent_through_the_gateway(catalog: Path) -> None:
    loaded = load(catalog)
    retriever, registry = AgentGraphRetriever.from_catalog(loaded, index=":memory:"), ToolRegistry.from_catalog(loaded)
    served = GatewayServer(Gateway(retriever, registry, approval="ask"), one_client())
    async with Client(served.server) as client:
        call = {"tool": "handbook/search_documents", "arguments": {"question": QUESTION}}
        answer: Any = await client.call_tool("call_tool", call)
    assert "25 days of paid leave a year. [leave.md#1]" in answer.content[0].text


async def test_a_call_of_a_folder_agent_marks_that_the_documents_do_not_answer(
    config: Callable[..., Path], tmp_path: Path
) -> None:
    config()
    tool = document_tool("handbook", overview_of(tmp_path / "docs"), Library(tmp_path / "docs", place=":memory:"))
    call = {"type": "tool_call", "name": tool.name, "args": {"question": "Who is the treasurer?"}, "id": "1"}
    for message in (tool.invoke(call), await tool.ainvoke(call)):
        assert message.status == "success"
        assert message.text == "The documents do not answer this."
        assert (message.artifact["answered"], message.artifact["citations"]) == (False, [])


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    tool = document_tool("handbook", overview_of(tmp_path / "docs"), Library(tmp_path / "docs", place=":memory:"))
    with pytest.raises(ToolException, match="no document in docs that can be read"):
        tool.invoke({"question": "Who is the treasurer?"})


def test_a_folder_is_no_server_and_must_be_agreed_to(config: Callable[..., Path]) -> None:
    path = config()
    assert servers_in(str(path)) == {}
    (start,) = starts_in(str(path))
    assert str(start) == f"handbook: reads the documents in {path.parent / 'docs'}"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"documents": "nowhere"}, "no documents at .*nowhere: there is no such folder"),
        ({"documents": "mcp.json"}, "there is no such folder"),
        ({"documents": 5}, "'documents' must be the path"),
        ({"documents": "docs", "command": "rm"}, "leave out 'command'"),
        ({"documents": None}, "'documents' must be the path"),
    ],
)
def test_a_wrong_entry_is_left_out_and_named(
    config: Callable[..., Path], tmp_path: Path, entry: dict[str, Any], said: str
) -> None:
    (tmp_path / "other").mkdir()
    loaded = load(config(entry, other={"documents": "other"}))
    assert [agent.id for agent in loaded.catalog.agents] == ["other"]
    assert re.search(f"^handbook: .*{said}.*mcp.json", str(loaded.problems[0]))


def test_an_overview_needs_no_headings(tmp_path: Path) -> None:
    assert overview_of(tmp_path).topics == "no documents yet"
    (tmp_path / "annual_report-2024.pdf").write_bytes(b"%PDF")
    (tmp_path / "notes.txt").write_bytes(b"\xff\xfe\x00broken \xed\xa0\x80 text about zeppelins")
    found = overview_of(tmp_path)
    assert found.topics == "annual report 2024; notes"
    assert "zeppelins" in found.terms


def test_an_overview_is_bounded(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number:02}.md").write_text(f"# Heading number {number}\n\n" + f"word{number} " * 50)
    found = overview_of(tmp_path)
    assert len(found.topics) <= 300
    assert len(found.terms) <= 600


def test_new_documents_are_found_without_a_restart(config: Callable[..., Path], tmp_path: Path) -> None:
    config()
    library = Library(tmp_path / "docs", place=":memory:")
    tool = document_tool("handbook", overview_of(tmp_path / "docs"), library)
    assert "do not answer this" in tool.invoke("What is served for lunch?")
    (tmp_path / "docs" / "lunch.md").write_text("# Lunch\n\nSoup is served for lunch.\n")
    assert "[lunch.md#1]" in tool.invoke("What is served for lunch?")


async def test_a_tool_call_outside_of_a_graph_has_no_lower_limit_of_loops(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(12):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Office {number}\nThe chair of office {number} is blue.\n")
    tool = document_tool("offices", overview_of(tmp_path / "docs"), Library(tmp_path / "docs", place=":memory:"))
    assert "do not answer this" in await tool.ainvoke({"question": "Who repaints bicycles?"})


@pytest.fixture
def reader() -> ScriptedModel:
    """A model that is worker and reader; each of its messages costs 11 tokens."""

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        last = messages[-1]
        if isinstance(messages[0], SystemMessage) and messages[0].text == READER:
            read = isinstance(last, ToolMessage)
            said = AIMessage(ANSWER) if read else calls("chunk_read", chunk_ids=["leave.md#1"])
        elif isinstance(last, ToolMessage):
            said = AIMessage(f"The handbook says: {unlabelled(last)}")
        else:
            said = calls("handbook_search_documents", question=QUESTION)
        said.usage_metadata = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
        said.response_metadata = {"model_name": "reader-1"}
        return said

    return ScriptedModel(replies=[reply])


@pytest.fixture
def named(reader: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the same model."""
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda _: reader)
    chat_model.cache_clear()
    yield NAME
    chat_model.cache_clear()


def check(state: Any) -> None:
    (result,) = state["results"].values()
    assert [call["output"] for call in result["calls"]] == [ANSWER]
    assert state["messages"][-1].text == f"The handbook says: {ANSWER}"


def test_a_folder_agent_uses_the_worker_model(catalog: Path, named: str) -> None:
    state = asked(app(catalog, worker_model=named), Settings())
    (result,) = state["results"].values()
    assert [call["output"] for call in result["calls"]] == [ANSWER]


def test_a_folder_agent_uses_the_model_in_the_context_of_the_run(catalog: Path, named: str) -> None:
    made = app(catalog)
    check(asked(made, Settings(planning="none", model=named)))
    without = asked(made, Settings())
    assert "25 days of paid leave a year. [leave.md#1]" in without["messages"][-1].text, "a model is that of one run"


def test_the_model_of_the_run_comes_before_that_of_the_environment(
    catalog: Path, reader: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_MODEL", "nowhere:nothing")
    check(asked(app(catalog, model=reader), Settings(planning="none")))


def test_the_usage_of_a_folder_agent_is_counted_in_its_step(catalog: Path, reader: ScriptedModel) -> None:
    usage = asked(app(catalog, model=reader), Settings(planning="none"))["usage"]
    assert len(reader.shown) == 4, "two messages of the worker, two of the reader"
    assert usage["by_role"]["worker"]["calls"] == 4
    assert (usage["input_tokens"], usage["output_tokens"]) == (40, 4)


async def test_outside_of_a_step_a_folder_agent_uses_its_configured_model(
    catalog: Path, named: str, tmp_path: Path
) -> None:
    about, library = overview_of(tmp_path / "docs"), Library(tmp_path / "docs", place=":memory:")
    assert "[leave.md#1]" in await document_tool("handbook", about, library).ainvoke(QUESTION)
    assert await document_tool("handbook", about, library, named).ainvoke(QUESTION) == ANSWER
    assert document_tool("handbook", about, library, named).invoke(QUESTION) == ANSWER


@pytest.mark.parametrize(("said", "status"), [("The documents do not say it.", "success"), ("", "error")])
async def test_a_model_that_finds_nothing_gives_a_result_and_one_that_says_nothing_an_error(
    catalog: Path,
    tmp_path: Path,
    said: str,
    status: str,
) -> None:
    about, library = overview_of(tmp_path / "docs"), Library(tmp_path / "docs", place=":memory:")
    tool = document_tool("handbook", about, library).model_copy(update={"handle_tool_error": True})
    call = {"type": "tool_call", "name": tool.name, "args": {"question": "Who is the treasurer?"}, "id": "1"}
    model = ScriptedModel(replies=[calls("chunk_read", chunk_ids=["leave.md#1"]), AIMessage(said)])
    with within(TOOL_MODEL, ToolModel(model)):
        message = await tool.ainvoke(call)
    assert (message.status, message.text.startswith(said or "The model gave no answer.")) == (status, True)


def test_words_of_a_text_that_is_not_utf_8_are_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "prices.txt").write_bytes("Größen und Gebühren der Küche".encode("cp1252"))
    (tmp_path / "rooms.txt").write_bytes(b"\xef\xbb\xbf# R\xc3\xa4ume\n\nGr\xc3\xb6\xc3\x9fen")
    overview = overview_of(tmp_path)
    assert overview.topics == "prices; Räume"
    assert "gebühren" not in overview.terms
    assert "größen" in overview.terms or "grössen" in overview.terms
    assert "\ufffd" not in overview.topics + overview.terms
