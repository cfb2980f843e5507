"""The program is killed with -9 in every phase of a run with a revision; another one goes on: nothing is done twice."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from callsheet.agents.calls.review import decision_on, flat
from conversation import Conversation
from fake_agents import OFFICE, FakeAgents
from forked import run_forked
from fuzzing import is_long
from office_plans import SUM, sums

TESTS = Path(__file__).parents[2]
CALLS = Counter(list_files=1, read_file=3, write_row=1)
PHASES = [("Nodes", name, 1) for name in ("request", "plan", "answer")]
PHASES += [("Nodes", name, at) for name in ("dispatch", "revise") for at in (1, 2, 3)]
PHASES += [(*part, at) for part in (("StepNodes", "work"), ("FakeAgents", "_done")) for at in (1, 3, 5)]
PHASES += [("StepNodes", "retrieve", 3)]
KILLED = [(*phase, after) for phase in PHASES for after in ((False, True) if is_long() else (True,))]
"""After a phase, before it is in a checkpoint; in the long run also before it."""
PROGRAM = """
import asyncio, gc, os, sys
from pathlib import Path

sys.path[:0] = {support!r}
from callsheet.orchestrator.nodes import Nodes
from callsheet.orchestrator.step import StepNodes
from fake_agents import FakeAgents
from test_killed import asked, killed_at

asyncio.run(asked(Path({folder!r}, "whole")))  # what is imported on the way is there for all
gc.freeze()
for number, (kind, name, at, after) in enumerate({killed!r}):
    child = os.fork()
    if not child:
        killed_at(Path({folder!r}, str(number)), globals()[kind], name, at, after=after)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def dying(real: Any, at: int, *, after: bool) -> Any:
    """The function, which kills its process before or after it is called for the nth time."""
    count = itertools.count(1)

    def cut(*args: Any, **kwargs: Any) -> Any:
        if (now := next(count) == at) and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        value = real(*args, **kwargs)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    async def cut_async(*args: Any, **kwargs: Any) -> Any:
        if (now := next(count) == at) and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        value = await real(*args, **kwargs)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    return cut_async if inspect.iscoroutinefunction(real) else cut


async def run(folder: Path, given: Any) -> tuple[dict[str, Any], list[Any]]:
    """Runs, or goes on with, the thread that is kept in a folder; its state, and what waits for the user.

    The folder is also the user's: nobody is asked about the open calls of a run in another one.
    """
    config: Any = {"configurable": {"thread_id": "1"}}
    home = patch.dict(os.environ, {"CALLSHEET_HOME": str(folder / "home")})
    async with AsyncSqliteSaver.from_conn_string(str(folder / "threads.sqlite")) as saver:
        app = Conversation(FakeAgents(*OFFICE, log=folder / "calls.log").agents(), model=sums(), saver=saver).app
        with home:
            await app.ainvoke(given, config, durability="sync")
        state = await app.aget_state(config)
    return state.values, [*state.interrupts]


async def asked(folder: Path) -> None:
    """A new run, in a new folder."""
    folder.mkdir()
    await run(folder, {"messages": [{"role": "user", "content": SUM}]})


def killed_at(folder: Path, kind: Any, name: str, at: int, *, after: bool) -> None:
    """A run that kills its process."""
    setattr(kind, name, dying(getattr(kind, name), at, after=after))
    asyncio.run(asked(folder))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each phase, in which a run was killed; one program makes all of them, and imports once."""
    folder = tmp_path_factory.mktemp("killed")
    support = [str(Path(__file__).parent), *(path for path in sys.path if Path(path).is_relative_to(TESTS))]
    program = PROGRAM.format(support=support, killed=KILLED, folder=str(folder))
    done = run_forked(["-c", program])
    assert {*done.stdout.split()} == {f"{-signal.SIGKILL}"}, done.stderr
    return folder


@pytest.mark.parametrize(
    "number", range(len(KILLED)), ids=[f"{'after' if z else 'before'}-{n}-{i}" for _, n, i, z in KILLED]
)
async def test_a_killed_run_is_resumed_and_no_effect_is_repeated(killed: Path, number: int) -> None:
    folder = killed / f"{number}"
    office = FakeAgents(*OFFICE, log=folder / "calls.log")
    state, waiting = await run(folder, None)
    while waiting:  # of a call that was under way; somebody has looked whether it took effect
        assert {question.value["type"] for question in waiting} == {"unknown_outcome"}
        verdicts = {question.id: verdict(office, question.value) for question in waiting}
        state, waiting = await run(folder, Command(resume=verdicts))
    assert Counter(name for name, _ in office.logged()) == CALLS
    assert [r["reason"] for r in state["revisions"]][1:] == ["a row is due"]
    assert {result["status"] for result in state["results"].values()} == {"done"}
    assert "written: 1420" in state["messages"][-1].text


def verdict(office: FakeAgents, asked: Any) -> dict[str, Any]:
    """What somebody says who has looked into the log."""
    name, args = asked["tool"].rpartition("/")[2], flat(asked)["args"]
    if [name, args] not in office.logged():
        return decision_on("edit", asked)
    tools = {tool.name: tool for tools in FakeAgents(*OFFICE).agents().values() for tool in tools}
    return decision_on("respond", asked, message=tools[name].invoke(args))
