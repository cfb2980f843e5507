"""A graph on another LangGraph server as an agent: its questions, its tokens, its failures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_client

from callsheet import A2AAgent, Settings, create_supervisor
from langgraph_server import DevServer

pytestmark = pytest.mark.server

OFFICE = Path(__file__).parents[2] / "fixtures" / "office"
REQUEST: Any = {"messages": [("user", "Ask the clerk to file a form")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}
ASKED = {"question": "which form?", "about": "Ask the clerk to file a form"}


@pytest.fixture(scope="module")
def clerk_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("office")
    shutil.copytree(OFFICE, folder, dirs_exist_ok=True)
    server = DevServer(folder, folder / "langgraph.json", folder / "server.log")
    server.start()
    yield server.url
    server.stop()


def supervised(url: str, *, keep: bool = True) -> Any:
    remote = RemoteGraph("clerk", url=url)
    workflow = create_supervisor([remote], settings=Settings(allow=("clerk/run",)))
    return workflow.compile(checkpointer=InMemorySaver() if keep else None)


async def test_what_a_remote_graph_asks_is_asked_by_our_run_and_resumes_it(clerk_server: str) -> None:
    app = supervised(clerk_server)
    (first,) = (await app.ainvoke(REQUEST, THREAD))["__interrupt__"]
    assert first.value == ASKED
    (second,) = (await app.ainvoke(Command(resume="form 12"), THREAD))["__interrupt__"]
    assert second.value == {"question": "file form 12?"}
    result = (await app.ainvoke(Command(resume="sure"), THREAD))["results"]["1"]
    assert (result["status"], result["result"]) == ("done", "The clerk reports form 12: sure, begun 3 times")
    assert len(result["calls"]) == 1


def test_a_question_of_a_remote_graph_resumes_a_blocking_caller(clerk_server: str) -> None:
    app = supervised(clerk_server)
    (first,) = app.invoke(REQUEST, THREAD)["__interrupt__"]
    assert first.value == ASKED
    (second,) = app.invoke(Command(resume="form 13"), THREAD)["__interrupt__"]
    assert second.value == {"question": "file form 13?"}
    state = app.invoke(Command(resume="sure"), THREAD)
    assert state["results"]["1"]["result"].startswith("The clerk reports form 13: sure")


async def test_the_tokens_of_a_remote_graph_are_streamed(clerk_server: str) -> None:
    app = supervised(clerk_server)
    for answer in (REQUEST, Command(resume="form 14")):
        await app.ainvoke(answer, THREAD)
    words = []
    async for _, (message, _about) in app.astream(
        Command(resume="sure"), THREAD, stream_mode="messages", subgraphs=True
    ):
        words.append(message["content"] if isinstance(message, dict) else message.content)
    assert [word for word in words if word in ("The", "clerk", "reports")] == ["The", "clerk", "reports"]


async def test_the_same_server_through_its_a2a_endpoint(clerk_server: str) -> None:
    (assistant,) = await get_client(url=clerk_server).assistants.search(graph_id="clerk")
    agent = A2AAgent(f"{clerk_server}/a2a/{assistant['assistant_id']}")
    app: Any = create_supervisor([agent], settings=Settings(allow=("clerk/run",))).compile(InMemorySaver())
    (first,) = (await app.ainvoke(REQUEST, THREAD))["__interrupt__"]
    assert first.value["data"][0]["value"] == ASKED
    (second,) = (await app.ainvoke(Command(resume={"resume": "form 15"}), THREAD))["__interrupt__"]
    assert second.value["data"][0]["value"] == {"question": "file form 15?"}
    stream = app.astream(Command(resume="sure"), THREAD, stream_mode="custom", subgraphs=True)
    told = [event["text"] async for _, event in stream if event["event"] == "progress"]
    result = app.get_state(THREAD).values["results"]["1"]
    assert result["status"] == "done"
    assert result["result"].startswith("The clerk reports form 15: sure")
    assert {"The clerk", "The clerk reports form"} <= set(told)


async def test_without_a_checkpointer_the_question_of_a_remote_graph_is_an_error(clerk_server: str) -> None:
    result = (await supervised(clerk_server, keep=False).ainvoke(REQUEST))["results"]["1"]
    assert result["status"] == "failed"
    assert "compiled with a checkpointer" in result["error"]


async def test_an_unreachable_remote_graph_is_a_failed_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("httpcore._async.connection.RETRIES_BACKOFF_FACTOR", 0.01)  # seconds before the second attempt
    result = (await supervised("http://127.0.0.1:9").ainvoke(REQUEST, THREAD))["results"]["1"]
    assert result["status"] == "failed"
    assert "agent 'clerk', tool 'run'" in result["error"]
