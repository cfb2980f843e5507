"""A run whose checkpoints are in Postgres; skipped where Postgres is not installed."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents import ConcurrentRunError
from callsheet.agents.approval import run_claim

RATE, NOTE = "look up the rate of USD", "write a note with it"
GIVEN: Any = {"messages": [HumanMessage(f"Please {RATE}, and {NOTE}")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}


def program(name: str) -> str:
    """A program of Postgres, which Debian keeps off the path."""
    folders = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ["PATH"]]))
    if found is None:
        pytest.skip("Postgres is not installed here")
    return found


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of its own on a Unix socket."""
    initdb, control = program("initdb"), program("pg_ctl")
    folder = Path(tempfile.mkdtemp(prefix="callsheet-postgres-"))
    # Postgres does not run as root.
    user: dict[str, Any] = {}
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
        user = {"user": "postgres"}
    run: Any = {"capture_output": True, "cwd": folder, **user}
    subprocess.run([initdb, "-D", folder / "data", "-U", "callsheet", "--auth=trust", "--no-sync"], check=True, **run)
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    log = folder / "log"
    subprocess.run([control, "-D", folder / "data", "-o", options, "-l", log, "-w", "start"], check=True, **run)
    yield f"postgresql://callsheet@/postgres?host={folder}"
    subprocess.run([control, "-D", folder / "data", "-m", "immediate", "stop"], check=True, **run)
    shutil.rmtree(folder)


@pytest.fixture
def workflow(shop: Any, monkeypatch: pytest.MonkeyPatch, scripted: Any, say: Any, worker: Any) -> Any:
    shop.approval = None
    planner = scripted(replies=[say["planned"](("1", RATE, []), ("2", NOTE, ["1"]))])
    loaded = shop.loaded(monkeypatch)
    return create_supervisor(loaded, planner_model=planner, worker_model=worker, settings=Settings(replans=0))


def approvals(state: Any) -> dict[str, str]:
    return {found.id: "approve" for found in state.get("__interrupt__", [])}


async def test_asynchronous_callers(address: str, workflow: Any, shop: Any) -> None:
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


def test_blocking_callers(address: str, workflow: Any, shop: Any) -> None:
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
        return {**await real(), "process": process.get(), "born": run_claim._born(process.get())}

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
