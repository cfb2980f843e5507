"""A run whose checkpoints are in Postgres."""

from __future__ import annotations

import asyncio
import os
from contextvars import ContextVar
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents import ConcurrentRunError
from callsheet.agents.calls import run_claim
from callsheet.graphs.process_identity import born
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, planned

RATE, NOTE = "look up the rate of USD", "write a note with it"
GIVEN: Any = {"messages": [HumanMessage(f"Please\0 {RATE}, and {NOTE}")]}  # NUL, which Postgres cannot store
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def address(store: str) -> str:
    """A schema of its own, as libpq spells it."""
    place, _, schema = store.partition("&schema=")
    return f"{place}&options=-csearch_path%3D{schema}"


@pytest.fixture
def workflow(shop: FakeAgents, monkeypatch: pytest.MonkeyPatch, worker: ScriptedModel) -> Any:
    shop.approval = None
    planner = ScriptedModel(replies=[planned(("1", RATE, []), ("2", NOTE, ["1"]))])
    loaded = shop.loaded(monkeypatch)
    return create_supervisor(loaded, planner_model=planner, worker_model=worker, settings=Settings())


def approvals(state: Any) -> dict[str, str]:
    return {found.id: {"type": "approve"} for found in state.get("__interrupt__", [])}


async def test_postgres_keeps_the_runs_of_asynchronous_callers(address: str, workflow: Any, shop: FakeAgents) -> None:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    given, state = GIVEN, {}
    while given is not None:
        # As another process would: nothing but the database is kept.
        async with AsyncPostgresSaver.from_conn_string(address) as saver:
            await saver.setup()
            state = await workflow.compile(checkpointer=saver).ainvoke(given, THREAD)
        answers = approvals(state)
        given = Command(resume=answers) if answers else None
    assert shop.called == ["exchange_rate", "write_note"]
    assert [state["results"][i]["status"] for i in "12"] == ["done", "done"]
    assert state["plan"]["request"].startswith("Please? look up")


def test_postgres_keeps_the_runs_of_blocking_callers(address: str, workflow: Any, shop: FakeAgents) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver

    thread: Any = {"configurable": {"thread_id": "2"}}
    with PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        app = workflow.compile(checkpointer=saver)
        state = app.invoke(GIVEN, thread)
        while answers := approvals(state):
            state = app.invoke(Command(resume=answers), thread)
    assert shop.called == ["exchange_rate", "write_note"]


async def test_of_two_processes_one_takes_a_step(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    process: ContextVar[int] = ContextVar("process")

    async def whoami(real: Any = run_claim._whoami) -> dict[str, Any]:
        return {**await real(), "process": process.get(), "born": born(process.get())}

    async def take(saver: Any, number: int, place: tuple[str, str]) -> None:
        process.set(number)
        await run_claim._take(saver, place, run_claim._Owner(object()))

    monkeypatch.setattr(run_claim, "_whoami", whoami)
    async with AsyncPostgresSaver.from_conn_string(address) as one, AsyncPostgresSaver.from_conn_string(address) as two:
        await one.setup()
        for _ in range(20):
            config: Any = {"configurable": {"thread_id": "3", "checkpoint_ns": ""}}
            kept: Any = await one.aput(config, empty_checkpoint(), {}, {})
            place = ("3", kept["configurable"]["checkpoint_id"])
            both = take(one, os.getpid(), place), take(two, os.getppid(), place)
            found = await asyncio.gather(*both, return_exceptions=True)
            assert [type(one) for one in found if one is not None] == [ConcurrentRunError]
