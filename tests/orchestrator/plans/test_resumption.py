"""A run that is cut off in any phase of an adaptive plan goes on where it was: nothing twice, no revision lost."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from callsheet.orchestrator.nodes import Nodes
from callsheet.orchestrator.step.step_nodes import StepNodes
from deciding_model import DecidingModel
from desk import Office, steps, worker

PLAN = [*steps("list notes"), {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"}]


class PowerCut(BaseException):
    """What no handler may swallow."""


def sum_up(told: str) -> dict[str, Any]:
    """Adds a row when the files were read, then ends."""
    if "written:" in told:
        return {"done": True, "reason": "the row is there"}
    if "rent 720" in told:
        return {"steps": [{"id": "9", "text": "write 1420", "depends_on": ["2.1", "2.2"]}], "reason": "a row is due"}
    return {}


def model() -> DecidingModel:
    return DecidingModel(plan=lambda _: {"steps": PLAN, "open": True}, revise=sum_up, work=worker)


PHASES = [(Nodes, name, 1) for name in ("request", "plan", "answer")]
PHASES += [(Nodes, name, at) for name in ("dispatch", "revise") for at in (1, 2, 3)]
PHASES += [(StepNodes, name, at) for name in ("retrieve", "work") for at in (1, 2, 5)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("kind", "name", "at"), PHASES, ids=[f"{name}-{at}" for _, name, at in PHASES])
def test_cut_off_in_every_phase(
    desk: Any, monkeypatch: pytest.MonkeyPatch, kind: Any, name: str, at: int, *, after: bool
) -> None:
    real, count = getattr(kind, name), [0]

    def cut_now() -> bool:
        count[0] += 1
        return count[0] == at

    def cut(self: Any, *args: Any) -> Any:
        if (now := cut_now()) and not after:
            raise PowerCut
        update = real(self, *args)
        if now:
            raise PowerCut
        return update

    async def cut_async(self: Any, *args: Any) -> Any:
        if (now := cut_now()) and not after:
            raise PowerCut
        update = await real(self, *args)
        if now:
            raise PowerCut
        return update

    is_async = name in ("request", "plan", "revise", "answer", "work")
    monkeypatch.setattr("callsheet.agents.approval.run_claim._PASSING_ON", 0.1)  # both runs are in this process
    run = Office(desk, model(), planning="adaptive")
    with monkeypatch.context() as patch:
        patch.setattr(kind, name, cut_async if is_async else cut)
        run = Office(desk, model(), planning="adaptive", saver=run.saver)
        try:
            run.ask("list notes, read each file and write the sum")
        except PowerCut:
            run = Office(desk, model(), planning="adaptive", saver=run.saver)
            state = run.ask(None)
        else:
            pytest.fail("this phase comes less often")
    assert sorted(desk.names()) == ["list_files", *["read_file"] * 3, "write_row"]
    assert [r["reason"] for r in state["revisions"]][1:] == ["a row is due"]
    assert {result["status"] for result in state["results"].values()} == {"done"}
    assert state["messages"][-1].type == "ai"


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

    run = Office(desk, model(), planning="adaptive")

    def one(thread: str) -> Any:
        config = {"configurable": {"thread_id": thread}}
        given = {"messages": [{"role": "user", "content": "list notes, read each file and write the sum"}]}
        return run.app.invoke(given, config)

    with ThreadPoolExecutor(2) as pool:
        states = list(pool.map(one, ["a", "b"]))
    assert [list(state["results"]) for state in states] == [["1", "2.1", "2.2", "2.3", "9"]] * 2
    assert sorted(desk.names()) == sorted(["list_files", *["read_file"] * 3, "write_row"] * 2)


async def test_a_cancelled_run_of_mapped_steps_is_taken_up(desk: Any) -> None:
    import asyncio

    run = Office(desk, model(), planning="adaptive")
    given = {"messages": [{"role": "user", "content": "list notes, read each file and write the sum"}]}

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
    state = await go(Command(resume={question.id: {"type": "not_done"} for question in waiting}))
    assert {result["status"] for result in state["results"].values()} == {"done"}
    assert desk.names().count("write_row") == 1
    assert desk.names().count("list_files") == 1
