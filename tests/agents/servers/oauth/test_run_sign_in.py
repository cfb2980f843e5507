"""A step that lacks a sign-in fails with the ways to sign in, and is repeated after it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import Settings, create_supervisor
from callsheet.agents.servers.oauth.sign_in import browser_sign_in
from callsheet.orchestrator.run.threads import take_up
from scripted_model import ScriptedModel, calls, ended, planned
from signed_in_server import SignedInServer, browse, tickets_of

WHO = "Whoami"
ADDRESS = "https://calls.example.com/callsheet/sign-in?agent=tickets"


def supervisor(server: SignedInServer, *, says: AIMessage | None = None) -> Any:
    """A supervisor whose worker makes the call, and then says this, or what came of the call."""

    def worker(messages: list[BaseMessage]) -> AIMessage:
        answered = isinstance(messages[-1], ToolMessage)
        return (says or ended(messages[-1])) if answered else calls("tickets_whoami")

    model, planner = ScriptedModel(replies=[worker]), ScriptedModel(replies=[planned(("1", WHO, []))])
    workflow = create_supervisor(tickets_of(server), model=model, planner_model=planner, settings=Settings())
    return workflow.compile(checkpointer=InMemorySaver())


def thread(user: str = "") -> Any:
    known = {"langgraph_auth_user": {"identity": user}} if user else {}
    return {"configurable": {"thread_id": user or "1", **known}}


async def test_the_step_is_repeated_after_the_sign_in_and_again_when_that_is_lost(server: SignedInServer) -> None:
    app = supervisor(server)
    state = await app.ainvoke({"messages": WHO}, thread())
    for _ in range(2):
        assert state["results"]["1"]["status"] == "failed"
        await browser_sign_in(server.url, browse)
        assert await take_up(app, thread())
        state = await app.ainvoke(None, thread())
        assert state["results"]["1"]["result"] == "anna"
        server.authorization.access.clear()
        server.authorization.refresh.clear()
        state = await app.ainvoke({"messages": WHO}, thread())
    assert len(server.authorization.issued) == 4


@pytest.mark.parametrize(
    "says",
    [None, AIMessage("All is well."), calls("finish", status="cannot", answer="It did not work.")],
    ids=["the error", "done", "cannot"],
)
@pytest.mark.parametrize("with_page", [True, False], ids=["server", "program"])
async def test_whatever_the_model_says_the_error_tells_how_to_sign_in(
    server: SignedInServer, monkeypatch: pytest.MonkeyPatch, says: AIMessage | None, *, with_page: bool
) -> None:
    if with_page:
        monkeypatch.setenv("CALLSHEET_URL", "https://calls.example.com")
    state = await supervisor(server, says=says).ainvoke({"messages": WHO}, thread("bert"))
    result = state["results"]["1"]
    assert (result["status"], result["attempts"]) == ("failed", 1)
    assert f"run `callsheet sign-in {server.url} --user bert`" in result["error"]
    assert (ADDRESS in result["error"]) == with_page
    assert [(call["kind"], call["effect"]) for call in result["calls"]] == [("sign_in", "none")]
    assert server.authorization.issued == []


async def test_users_hold_tokens_of_their_own(server: SignedInServer) -> None:
    app = supervisor(server)
    for user in ("bert", "carla"):
        server.authorization.person = user
        await browser_sign_in(server.url, browse, user=user)
    results = {user: (await app.ainvoke({"messages": WHO}, thread(user)))["results"]["1"] for user in ("bert", "carla")}
    assert {user: result["result"] for user, result in results.items()} == {"bert": "bert", "carla": "carla"}
    assert (await app.ainvoke({"messages": WHO}, thread()))["results"]["1"]["status"] == "failed"


async def test_tokens_are_in_no_checkpoint_event_log_or_file(
    server: SignedInServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.leaks = True
    app, events = supervisor(server), list[Any]()
    await browser_sign_in(server.url, browse)
    modes: Any = ["values", "updates", "custom", "checkpoints", "tasks", "debug"]
    async for event in app.astream({"messages": WHO}, thread(), stream_mode=modes, subgraphs=True):
        events.append(event)
    state = await app.aget_state(thread(), subgraphs=True)
    assert state.values["results"]["1"]["result"].startswith("anna with ")
    saver = app.checkpointer
    kept = f"{events}{state}{[*saver.list(None)]}{dict(saver.storage)}{dict(saver.writes)}{dict(saver.blobs)}"
    on_disk = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert len(server.authorization.issued) == 2
    for secret in server.authorization.issued:
        assert secret not in kept
        assert secret not in caplog.text
        assert secret.encode() not in on_disk
