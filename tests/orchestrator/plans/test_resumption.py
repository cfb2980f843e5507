"""Adaptive runs that are approved, cancelled or run beside each other: nothing is done twice."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from callsheet.agents.calls.review import decided
from deciding_model import DecidingModel
from desk import SUM, Office, steps, sums, worker


def test_approval_inside_mapped_steps(desk: Any) -> None:
    plan = [*steps("list notes"), {"id": "2", "text": "write {item}", "for_each": "1.files[*].name"}]
    desk.approval = "always"
    run = Office(desk, DecidingModel(plan=lambda _: {"steps": plan}, work=worker), planning="adaptive")
    run.ask(Command(resume={q.id: {"type": "approve"} for q in run.ask("list notes and write each")["waiting"]}))
    waiting = run.app.get_state(run.config).interrupts
    assert sorted(question.value["step_id"] for question in waiting) == ["2.1", "2.2", "2.3"]
    answers = {q.id: {"type": "reject" if q.value["step_id"] == "2.2" else "approve"} for q in waiting}
    state = run.ask(Command(resume=answers))
    assert desk.names() == ["list_files", "write_row", "write_row"]
    assert {i: r["status"] for i, r in state["results"].items()} | {"2.2": ""} == {
        "1": "done", "2.1": "done", "2.2": "", "2.3": "done"
    }  # fmt: skip
    assert state["results"]["2.2"]["status"] != "done"


def test_two_threads_at_once(desk: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    run = Office(desk, sums(), planning="adaptive")

    def one(thread: str) -> Any:
        config = {"configurable": {"thread_id": thread}}
        given = {"messages": [{"role": "user", "content": SUM}]}
        return run.app.invoke(given, config)

    with ThreadPoolExecutor(2) as pool:
        states = list(pool.map(one, ["a", "b"]))
    assert [list(state["results"]) for state in states] == [["1", "2.1", "2.2", "2.3", "9"]] * 2
    assert sorted(desk.names()) == sorted(["list_files", *["read_file"] * 3, "write_row"] * 2)


async def test_a_cancelled_run_of_mapped_steps_is_taken_up(desk: Any) -> None:
    import asyncio

    run = Office(desk, sums(), planning="adaptive")
    given = {"messages": [{"role": "user", "content": SUM}]}

    async def go(given: Any) -> Any:
        return await run.app.ainvoke(given, run.config, durability="sync")

    task = asyncio.create_task(go(given))
    while "read_file" not in desk.names():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await go(None)
    waiting = run.app.get_state(run.config).interrupts  # nobody knows whether the call that was cut off took effect
    assert {question.value["type"] for question in waiting} == {"unknown_outcome"}
    state = await go(Command(resume={question.id: decided("edit", question.value) for question in waiting}))
    assert {result["status"] for result in state["results"].values()} == {"done"}
    assert desk.names().count("write_row") == 1
    assert desk.names().count("list_files") == 1
