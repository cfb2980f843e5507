"""A run that dies at any point goes on: what is done is not done again, what may be done is asked about."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents.calls import run_claim
from callsheet.agents.calls.review import TOOK_EFFECT, decision_on, flat
from fake_agents import FakeAgents
from power_cut import PowerCut
from scripted_model import ScriptedModel, calls, planned

RATE, NOTE = "look up the rate of USD", "write a note with it"
STEPS = (("1", RATE, []), ("2", NOTE, ["1"]))
GIVEN: Any = {"messages": [HumanMessage(f"Please {RATE}, and {NOTE}")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}
ONCE = ["exchange_rate", "write_note"]
PROGRAM = "rate = bank_exchange_rate(currency='USD')\nnoted = notebook_write_note(text=rate)\nf'{rate}, {noted}'"


class Fragile(InMemorySaver):
    """Loses power when it is to write for the nth time; nothing works after that."""

    def __init__(self, dies_at: int) -> None:
        super().__init__()
        self.left, self.off = dies_at, False

    def put(self, *args: Any, **more: Any) -> Any:
        self._spend()
        return super().put(*args, **more)

    def put_writes(self, *args: Any, **more: Any) -> None:
        self._spend()
        super().put_writes(*args, **more)

    def _spend(self) -> None:
        self.left -= 1
        self.off = self.off or self.left < 0
        if self.off:
            raise PowerCut

    def repaired(self) -> InMemorySaver:
        whole = InMemorySaver()
        whole.storage, whole.writes, whole.blobs = self.storage, self.writes, self.blobs
        return whole


@pytest.fixture
def workflow(
    request: pytest.FixtureRequest,
    shop: FakeAgents,
    monkeypatch: pytest.MonkeyPatch,
    worker: ScriptedModel,
) -> Any:
    """Two steps with a call each; or one step with a program of both calls."""
    shop.approval = None
    monkeypatch.setattr(run_claim, "_PASSING_ON", 0.1)  # a run that has lost power is waited for so long
    code_mode, steps = getattr(request, "param", "") == "a program", STEPS
    if code_mode:
        written, steps = calls("run_program", code=PROGRAM), ((*STEPS[0][:1], f"{RATE}, and {NOTE}", []),)
        worker = ScriptedModel(
            replies=[lambda told: AIMessage(told[-1].text) if isinstance(told[-1], ToolMessage) else written]
        )
    return create_supervisor(
        shop.loaded(monkeypatch),
        planner_model=ScriptedModel(replies=[planned(*steps)]),
        worker_model=worker,
        settings=Settings(code_mode=code_mode, tool_floor=0),
    )


def truth(waiting: Sequence[Any], shop: Any) -> dict[str, Any]:
    """The answers of a person who approves everything and looks whether a call took effect."""
    answers = {}
    for found in waiting:
        if found.value["type"] == "tool_approval":
            answers[found.id] = decision_on("approve", found.value)
        elif flat(found.value)["name"] in shop.called:
            answers[found.id] = decision_on("respond", found.value, message=TOOK_EFFECT)
        else:
            answers[found.id] = decision_on("edit", found.value)
    return answers


async def to_the_end(app: Any, shop: Any, given: Any, durability: Any, asked: set[str] | None = None) -> Any:
    state = await app.ainvoke(given, THREAD, durability=durability)
    while waiting := state.get("__interrupt__"):
        (set() if asked is None else asked).update(found.value["type"] for found in waiting)
        state = await app.ainvoke(Command(resume=truth(waiting, shop)), THREAD, durability=durability)
    return state


@pytest.mark.parametrize("workflow", ["calls", "a program"], indirect=True)
@pytest.mark.parametrize(
    ("durability", "every"), [pytest.param("sync", 1, marks=pytest.mark.exhaustive), ("sync", 6), ("async", 6)]
)
async def test_killed_at_a_write_of_a_checkpoint_every_effect_happens_once(
    workflow: Any, shop: FakeAgents, monkeypatch: pytest.MonkeyPatch, durability: str, every: int
) -> None:
    saver = Fragile(10_000)
    real = FakeAgents._done

    def done(self: FakeAgents, name: str, answer: str, /, **args: Any) -> str:
        if saver.off:
            raise PowerCut
        return real(self, name, answer, **args)

    monkeypatch.setattr(FakeAgents, "_done", done)
    await to_the_end(workflow.compile(checkpointer=saver), shop, GIVEN, durability)
    writes, asked = 10_000 - saver.left, set[str]()
    for dies_at in range(0, writes, every):
        shop.calls.clear()
        saver = Fragile(dies_at)
        with pytest.raises(PowerCut):
            await to_the_end(workflow.compile(checkpointer=saver), shop, GIVEN, durability)
        app, saver = workflow.compile(checkpointer=saver.repaired()), Fragile(1)
        before = await app.aget_state(THREAD)
        if before.values and not before.tasks:
            state = before.values  # it had just come to its end
        else:
            state = await to_the_end(app, shop, None if before.values else GIVEN, durability, asked)
        assert sorted(shop.called) == ONCE, f"killed at write {dies_at} of {writes}"
        assert {result["status"] for result in state["results"].values()} == {"done"}
    assert "tool_approval" in asked
    assert every > 1 or "unknown_outcome" in asked


@pytest.mark.parametrize("workflow", ["calls", "a program"], indirect=True)
def test_sqlite_serves_blocking_callers(workflow: Any, shop: FakeAgents, tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        state = workflow.compile(checkpointer=saver).invoke(GIVEN, THREAD)
    assert shop.called == []
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        app = workflow.compile(checkpointer=saver)
        while waiting := state.get("__interrupt__"):
            state = app.invoke(Command(resume=truth(waiting, shop)), THREAD)
    assert sorted(shop.called) == ONCE


@pytest.mark.parametrize("workflow", ["calls", "a program"], indirect=True)
async def test_sqlite_serves_asynchronous_callers(workflow: Any, shop: FakeAgents, tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        await to_the_end(workflow.compile(checkpointer=saver), shop, GIVEN, "sync")
    assert sorted(shop.called) == ONCE


@pytest.mark.parametrize("answer", ["approve", "reject", None])
async def test_a_call_of_a_run_that_was_rolled_back_is_not_repeated(
    workflow: Any, shop: FakeAgents, monkeypatch: pytest.MonkeyPatch, answer: str | None
) -> None:
    """A server that rolls a run back deletes its checkpoints, and not what it wrote to those before it."""
    saver = InMemorySaver()
    app = workflow.compile(checkpointer=saver)
    state = await app.ainvoke(GIVEN, THREAD)
    state = await app.ainvoke(Command(resume=truth(state["__interrupt__"], shop)), THREAD)
    (asked,) = state["__interrupt__"]
    before = {ns: set(found) for ns, found in saver.storage["1"].items()}
    done, released = shop._done, threading.Event()

    def late(name: str, answer: str, /, **args: Any) -> str:
        """The effect is there, and the answer is not until the tool is released."""
        told = done(name, answer, **args)
        released.wait(20)
        return told

    monkeypatch.setattr(shop, "_done", late)
    run = asyncio.create_task(app.ainvoke(Command(resume={asked.id: {"type": "approve"}}), THREAD))
    async with asyncio.timeout(60):
        while shop.called != ONCE:
            await asyncio.sleep(0.01)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    released.set()
    for ns, found in [*saver.storage["1"].items()]:
        saver.storage["1"][ns] = {key: value for key, value in found.items() if key in before.get(ns, ())}
    state = await app.ainvoke(None if answer is None else Command(resume={asked.id: answer}), THREAD)
    (asked,) = state["__interrupt__"]
    assert (asked.value["type"], flat(asked.value)["name"]) == ("unknown_outcome", "notebook_write_note")
    state = await app.ainvoke(
        Command(resume={asked.id: decision_on("respond", asked.value, message=TOOK_EFFECT)}), THREAD
    )
    assert not state.get("__interrupt__")
    assert state["results"]["2"]["status"] == "done"
    assert shop.called == ONCE
