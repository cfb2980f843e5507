"""A run that meets a server without a sign-in waits for a person, and goes on afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.graphs import Agent, Catalog, Loaded, Tool
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from scripted_model import ScriptedModel, planned
from signed_in_server import SignedInServer, browse, signed_in_server

WHO = "Tell who is signed in"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignedInServer]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_KEY", "k" * 32)
    monkeypatch.setattr("callsheet.agents.approval.run_claim._PASSING_ON", 0.1)
    with signed_in_server() as started:
        yield started


def supervisor(server: SignedInServer, **settings: Any) -> Any:
    hints = {"readOnlyHint": True, "idempotentHint": True}
    tool = Tool(agent="tickets", name="whoami", description="Tell who is signed in.", annotations=hints)
    config = ServerConfig(url=server.url, transport="http", callsheet=ServerOptions(trusted=True))
    loaded = Loaded(Catalog(agents=(Agent(id="tickets", tools=(tool,)),)), connections={"tickets": config})
    planner = ScriptedModel(replies=[planned(("1", WHO, []))])
    workflow = create_supervisor(loaded, planner_model=planner, settings=Settings(**settings))
    return workflow.compile(checkpointer=InMemorySaver())


def thread(user: str = "", name: str = "1") -> Any:
    known = {"langgraph_auth_user": {"identity": user}} if user else {}
    return {"configurable": {"thread_id": name, **known}}


async def asked(app: Any, config: Any) -> Any:
    state = await app.ainvoke({"messages": WHO}, config)
    (question,) = state["__interrupt__"]
    return question


async def replied(app: Any, config: Any, question: Any, answer: Any) -> Any:
    return await app.ainvoke(Command(resume={question.id: answer}), config)


async def test_a_run_waits_for_a_sign_in_and_goes_on(server: SignedInServer) -> None:
    app = supervisor(server)
    question = await asked(app, thread())
    value = question.value
    assert (value["type"], value["step_id"], value["agent"]) == ("sign_in", "1", "tickets")
    assert value["url"].startswith(f"{server.origin}/authorize?")
    assert value["confirm"] is False
    await browse(value["url"])
    state = await replied(app, thread(), question, {"type": "signed_in"})
    assert state["results"]["1"]["result"] == "anna"


async def test_whoever_declines_is_told_what_the_step_lacks(server: SignedInServer) -> None:
    app = supervisor(server)
    state = await replied(app, thread(), await asked(app, thread()), {"type": "decline"})
    result = state["results"]["1"]
    assert result["status"] == "failed"
    assert "asks for sign-in" in result["error"]
    assert "declined" in result["error"]
    assert server.authorization.issued == []
