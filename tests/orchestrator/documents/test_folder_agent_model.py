"""The agent of a folder answers with the model of the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from callsheet import AgentGraphRetriever, Settings, ToolRegistry, create_supervisor, load
from callsheet.agents.models.chat_models import chat_model
from callsheet.agents.servers.in_process import tool_model
from callsheet.orchestrator.apps.arag_graph import READER
from callsheet.orchestrator.apps.folder_agent import document_tool
from callsheet.retrievers.documents.document_index import Library
from callsheet.retrievers.documents.document_reading import overview_of

QUESTION = "How many days of paid leave are there a year?"
ANSWER = "Read and understood: 25 days. [leave.md#1]"
NAME = "test:reader"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ``mcp.json`` with a handbook of one document."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_YES", "1")
    for name in ("CALLSHEET_INDEX", "CALLSHEET_MODEL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "leave.md").write_text("# Leave\n\nEvery employee has 25 days of paid leave a year.\n")
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"handbook": {"documents": "docs/"}}}))
    return path


@pytest.fixture
def reader(scripted: Any, say: Any) -> Any:
    """A model that is worker and reader; each of its messages costs 11 tokens."""

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        last = messages[-1]
        if isinstance(messages[0], SystemMessage) and messages[0].text == READER:
            read = isinstance(last, ToolMessage)
            said = AIMessage(ANSWER) if read else say["calls"]("chunk_read", chunk_ids=["leave.md#1"])
        elif isinstance(last, ToolMessage):
            said = AIMessage(f"The handbook says: {last.text}")
        else:
            said = say["calls"]("handbook_search_documents", question=QUESTION)
        said.usage_metadata = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
        said.response_metadata = {"model_name": "reader-1"}
        return said

    return scripted(replies=[reply])


@pytest.fixture
def named(reader: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the same model."""
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda _: reader)
    chat_model.cache_clear()
    yield NAME
    chat_model.cache_clear()


def app(catalog: Path, **how: Any) -> Any:
    loaded = load(catalog)
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    registry = ToolRegistry(loaded.catalog, loaded.connections)
    return create_supervisor(loaded, retriever=retriever, registry=registry, **how).compile()


def asked(app: Any, settings: Settings) -> Any:
    return app.invoke({"messages": [{"role": "user", "content": QUESTION}]}, context=settings)


def check(state: Any) -> None:
    (result,) = state["results"].values()
    assert [call["output"] for call in result["calls"]] == [ANSWER]
    assert state["messages"][-1].text == f"The handbook says: {ANSWER}"


def test_a_model_object_of_the_supervisor(catalog: Path, reader: Any) -> None:
    check(asked(app(catalog, model=reader), Settings(planning="none")))


def test_a_model_of_the_workers_only(catalog: Path, named: str) -> None:
    state = asked(app(catalog, worker_model=named), Settings())
    (result,) = state["results"].values()
    assert [call["output"] for call in result["calls"]] == [ANSWER]


def test_a_model_in_the_context_of_the_run(catalog: Path, named: str) -> None:
    made = app(catalog)
    check(asked(made, Settings(planning="none", model=named)))
    without = asked(made, Settings())
    assert "25 days of paid leave a year. [leave.md#1]" in without["messages"][-1].text, "a model is that of one run"


def test_the_model_of_the_run_comes_before_that_of_the_environment(
    catalog: Path, reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_MODEL", "nowhere:nothing")
    check(asked(app(catalog, model=reader), Settings(planning="none")))


def test_its_cost_is_a_part_of_the_cost_of_the_step(catalog: Path, reader: Any) -> None:
    usage = asked(app(catalog, model=reader), Settings(planning="none"))["usage"]
    assert len(reader.shown) == 4, "two messages of the worker, two of the reader"
    assert usage["by_role"]["worker"]["calls"] == 4
    assert (usage["input_tokens"], usage["output_tokens"]) == (40, 4)


async def test_outside_of_a_step_it_is_as_configured(catalog: Path, named: str, tmp_path: Path) -> None:
    about, library = overview_of(tmp_path / "docs"), Library(tmp_path / "docs", place=":memory:")
    assert "[leave.md#1]" in await document_tool("handbook", about, library).ainvoke(QUESTION)
    assert await document_tool("handbook", about, library, named).ainvoke(QUESTION) == ANSWER
    assert document_tool("handbook", about, library, named).invoke(QUESTION) == ANSWER


@pytest.mark.parametrize(("said", "status"), [("The documents do not say it.", "success"), ("", "error")])
async def test_a_model_that_finds_nothing_gives_a_result_and_one_that_says_nothing_an_error(
    catalog: Path, tmp_path: Path, scripted: Any, say: Any, said: str, status: str
) -> None:
    about, library = overview_of(tmp_path / "docs"), Library(tmp_path / "docs", place=":memory:")
    tool = document_tool("handbook", about, library).model_copy(update={"handle_tool_error": True})
    call = {"type": "tool_call", "name": tool.name, "args": {"question": "Who is the treasurer?"}, "id": "1"}
    with tool_model(scripted(replies=[say["calls"]("chunk_read", chunk_ids=["leave.md#1"]), AIMessage(said)])):
        message = await tool.ainvoke(call)
    assert (message.status, message.text.startswith(said or "The model gave no answer.")) == (status, True)
