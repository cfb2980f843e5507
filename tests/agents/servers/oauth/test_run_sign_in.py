"""A run that meets a server without a sign-in waits for a person, and goes on afterwards."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx2
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents.servers.oauth.pending_sign_ins import pending
from callsheet.agents.servers.oauth.stored_tokens import StoredTokens
from callsheet.graphs import Agent, Catalog, Loaded, Tool
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from scripted_model import ScriptedModel, planned
from signed_in_server import SignedInServer, browse

WHO = "Whoami"


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


async def test_a_lost_sign_in_in_the_middle_of_a_thread_is_asked_for_again(server: SignedInServer) -> None:
    app = supervisor(server)
    for name in ("first", "second"):
        question = await asked(app, thread(name=name))
        await browse(question.value["url"])
        state = await replied(app, thread(name=name), question, "signed_in")
        assert state["results"]["1"]["result"] == "anna"
        server.authorization.access.clear()
        server.authorization.refresh.clear()
    assert len(server.authorization.issued) == 4


async def test_a_reply_without_a_sign_in_asks_again_at_the_same_address(server: SignedInServer) -> None:
    app = supervisor(server)
    question = await asked(app, thread())
    for reply, problem in (("signed_in", "nobody has signed in"), ({"type": "yes"}, "type: Input should be")):
        (again,) = (await replied(app, thread(), question, reply))["__interrupt__"]
        assert problem in again.value["problem"]
        assert again.value["url"] == question.value["url"]
        question = again
    await browse(question.value["url"])
    state = await replied(app, thread(), question, {"type": "signed_in"})
    assert state["results"]["1"]["result"] == "anna"


async def test_a_refusal_of_the_authorization_server_gives_another_address(server: SignedInServer) -> None:
    app, server.authorization.deny = supervisor(server), True
    question = await asked(app, thread())
    await browse(question.value["url"])
    (again,) = (await replied(app, thread(), question, {"type": "signed_in"}))["__interrupt__"]
    assert "access_denied" in again.value["problem"]
    assert again.value["url"] != question.value["url"]


async def test_users_repeat_the_code_and_hold_tokens_of_their_own(server: SignedInServer) -> None:
    app = supervisor(server)
    for user in ("bert", "carla"):
        config = thread(user, name=user)
        server.authorization.person = user
        question = await asked(app, config)
        assert question.value["confirm"] is True
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            page = (await browser.get(question.value["url"])).text
        assert StoredTokens(server.url, user).read() is None
        (question,) = (await replied(app, config, question, {"type": "signed_in"}))["__interrupt__"]
        assert "the code is not the one" in question.value["problem"]
        code = page.partition("with the code ")[2].partition(".")[0]
        state = await replied(app, config, question, {"type": "signed_in", "code": code})
        assert state["results"]["1"]["result"] == user
    assert StoredTokens(server.url).read() is None


async def test_where_nobody_is_asked_the_call_fails_with_the_command(server: SignedInServer) -> None:
    state = await supervisor(server, approval="never").ainvoke({"messages": WHO}, thread())
    assert f"run `callsheet sign-in {server.url}`" in state["results"]["1"]["error"]


async def test_without_a_key_the_call_fails_and_says_so(
    server: SignedInServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CALLSHEET_KEY")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    state = await supervisor(server).ainvoke({"messages": WHO}, thread())
    assert "a sign-in from here is not possible" in state["results"]["1"]["error"]
    assert "set CALLSHEET_KEY" in state["results"]["1"]["error"]


async def test_tokens_and_verifier_are_in_no_checkpoint_event_log_or_file(
    server: SignedInServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.leaks = True
    app, events = supervisor(server), list[Any]()
    question = await asked(app, thread())
    waiting = pending(httpx2.URL(question.value["url"]).params["state"])
    assert waiting is not None
    await browse(question.value["url"])
    modes: Any = ["values", "updates", "custom", "checkpoints", "tasks", "debug"]
    given: Any = Command(resume={question.id: {"type": "signed_in"}})
    async for event in app.astream(given, thread(), stream_mode=modes, subgraphs=True):
        events.append(event)
    state = await app.aget_state(thread(), subgraphs=True)
    assert state.values["results"]["1"]["result"].startswith("anna with ")
    saver = app.checkpointer
    kept = f"{events}{state}{[*saver.list(None)]}{dict(saver.storage)}{dict(saver.writes)}{dict(saver.blobs)}"
    on_disk = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert len(server.authorization.issued) == 2
    for secret in (*server.authorization.issued, waiting.authorization.verifier):
        assert secret not in kept
        assert secret not in caplog.text
        assert secret.encode() not in on_disk
