"""A run whose parts come one after the other to a step of the thread: between them no other process takes it."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from callsheet import create_supervisor
from callsheet.agents import ConcurrentRunError
from callsheet.agents.calls import run_claim
from forked import Forked
from notebook import Notebook

PROGRAM = '''
import asyncio, sys
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from callsheet import create_supervisor
from callsheet.agents import NoModel, Plan, Step
from callsheet.orchestrator.step import StepNodes

FOLDER = Path(sys.argv[1])
STEPS = [Step(id=text, text=f"Add a note with the text '{text}'", apart=True) for text in ("one", "two")]
work = StepNodes.work


async def planned(*_, **__):
    return Plan(steps=STEPS)


async def held_up(self, state, worker):
    if state["steps"][0]["id"] == "two":
        while not (FOLDER / "notes").exists():
            await asyncio.sleep(0.02)
        (FOLDER / "between").touch()
        while not (FOLDER / "go").exists():
            await asyncio.sleep(0.02)
    return await work(self, state, worker)


def add_note(text: str) -> str:
    """Adds a note with a text to the notebook."""
    with (FOLDER / "notes").open("a") as notes:
        notes.write(f"{text} ")
    return "noted"


async def main() -> None:
    NoModel.plan, StepNodes.work = planned, held_up
    async with AsyncSqliteSaver.from_conn_string(str(FOLDER / "runs.sqlite")) as saver:
        app = create_supervisor({"notebook": [add_note]}).compile(checkpointer=saver)
        thread = {"configurable": {"thread_id": "1"}}
        await app.ainvoke({"messages": "Add two notes"}, thread, context={"allow": ["notebook/add_note"]})


asyncio.run(main())
'''


@pytest.mark.server
@pytest.mark.timeout(300)
async def test_between_two_parts_of_a_run(notebook: Notebook, tmp_path: Path) -> None:
    """The first step of two that were sent off together is done, and the second has not begun yet."""
    other = Forked(["-c", PROGRAM, str(tmp_path)], stderr=subprocess.PIPE)
    try:
        while not (tmp_path / "between").exists():
            assert other.poll() is None, other.communicate()
            await asyncio.sleep(0.05)
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
            app: Any = create_supervisor(notebook.agents).compile(checkpointer=saver)
            thread: Any = {"configurable": {"thread_id": "1"}}
            with pytest.raises(ConcurrentRunError, match=f"process {other.pid} on "):
                await app.ainvoke(None, thread, context={"allow": ["notebook/add_note"]})
        (tmp_path / "go").touch()
        await asyncio.to_thread(other.wait)
    finally:
        other.kill()
        other.communicate()
    assert notebook.notes == []
    assert (tmp_path / "notes").read_text() == "one two "


async def test_a_checkpoint_is_taken_before_it_is_stored() -> None:
    """With durability "async" a step begins while its checkpoint is being written; another process finds it."""
    saver, place = InMemorySaver(), ("thread", "1f0c9a5e-0000-6000-8000-000000000001")
    first, second = run_claim._Owner(object()), run_claim._Owner(object())
    await run_claim._take(saver, place, first)
    config: Any = {"configurable": {"thread_id": place[0], "checkpoint_ns": ""}}
    saver.put(config, {**empty_checkpoint(), "id": place[1]}, {}, {})
    records = await run_claim._records(saver, place)
    assert [record["kind"] for record in records] == ["taken"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_claim, "_whoami", another_process)
        with pytest.raises(run_claim.ConcurrentRunError, match="another run is at the same step"):
            await run_claim._take(saver, place, second)


async def another_process() -> dict[str, Any]:
    return {"host": "here", "machine": "another", "process": 1, "born": "", "at": 0.0}
