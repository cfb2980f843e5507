"""A run whose parts come one after the other to a step of the thread: between them no other process takes it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from callsheet import create_supervisor
from callsheet.agents import ConcurrentRunError
from notebook import Notebook

PROGRAM = '''
import asyncio, sys, time
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from callsheet import create_supervisor
from callsheet.agents import Plan, Step
from callsheet.orchestrator.plans import request_planner
from callsheet.orchestrator.step.step_nodes import StepNodes

FOLDER = Path(sys.argv[1])
STEPS = [Step(id=text, text=f"Add a note with the text '{text}'") for text in ("one", "two")]
retrieve = StepNodes.retrieve


async def planned(*_, **__):
    return Plan(steps=STEPS)


def held_up(self, state):
    if state["step"]["id"] == "two":
        while not (FOLDER / "notes").exists():
            time.sleep(0.02)
        (FOLDER / "between").touch()
        while not (FOLDER / "go").exists():
            time.sleep(0.02)
    return retrieve(self, state)


def add_note(text: str) -> str:
    """Adds a note with a text to the notebook."""
    with (FOLDER / "notes").open("a") as notes:
        notes.write(f"{text} ")
    return "noted"


async def main() -> None:
    request_planner.decompose, StepNodes.retrieve = planned, held_up
    async with AsyncSqliteSaver.from_conn_string(str(FOLDER / "runs.sqlite")) as saver:
        app = create_supervisor({"notebook": [add_note]}).compile(checkpointer=saver)
        thread = {"configurable": {"thread_id": "1"}}
        await app.ainvoke({"messages": "Add two notes"}, thread, context={"approval": "never"})


asyncio.run(main())
'''


@pytest.mark.server
@pytest.mark.timeout(300)
async def test_between_two_parts_of_a_run(notebook: Notebook, tmp_path: Path) -> None:
    """The first step of two that were sent off together is done, and the second has not begun yet."""
    other = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stderr=subprocess.PIPE, text=True)
    try:
        while not (tmp_path / "between").exists():
            assert other.poll() is None, other.communicate()
            await asyncio.sleep(0.05)
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
            app: Any = create_supervisor(notebook.agents).compile(checkpointer=saver)
            thread: Any = {"configurable": {"thread_id": "1"}}
            with pytest.raises(ConcurrentRunError, match=f"process {other.pid} on "):
                await app.ainvoke(None, thread, context={"approval": "never"})
        (tmp_path / "go").touch()
        await asyncio.to_thread(other.wait)
    finally:
        other.kill()
        other.communicate()
    assert notebook.notes == []
    assert (tmp_path / "notes").read_text() == "one two "
