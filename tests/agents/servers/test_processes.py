"""No process of a server outlives the program, or its run; one that is killed leaves only what ignores its end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from callsheet.agents.servers.session_pool import SessionPool
from callsheet.agents.servers.transport.stdio import family
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from servers import FIXTURES, HANG, alive, until

FAULTS = FIXTURES / "fault_server.py"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="process groups and marks are POSIX")
PROGRAM = """
import asyncio, sys
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.formats.server_config import ServerConfig

async def main():
    servers = [ServerConfig(command=sys.executable, args=({faults!r}, mode, "0", {tag!r})) for mode in {modes!r}]
    calls = [pool.call(f"run {{i % 2}}", str(i), server, "work", {{}}) for i, server in enumerate(servers)]
    await asyncio.gather(*calls)
    await pool.close_run("run 1")  # its servers wait for another run

pool = SessionPool()
asyncio.run(main())
print("ready", flush=True)
{last}
"""


def started(tmp_path: Path, last: str, *modes: str) -> tuple[subprocess.Popen[str], str]:
    """A program that holds a session with a server in each of these modes, and the tag of their processes."""
    tag = f"callsheet-{uuid.uuid4().hex}"
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(faults=str(FAULTS), tag=tag, modes=modes, last=last))
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(alive(tag)) >= len(modes)
    return process, tag


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_servers_end_with_their_input_when_the_program_is_killed(tmp_path: Path, number: int) -> None:
    process, tag = started(tmp_path, "import time; time.sleep(600)", "ok", "ok")
    process.send_signal(number)
    process.wait(HANG)
    assert until(lambda: not alive(tag)), alive(tag)


SIGNAL = """
import os, signal
from callsheet.__main__ import exit_on_signals
exit_on_signals()
os.kill(os.getpid(), signal.{})
"""


@pytest.mark.parametrize("last", ["", "1 / 0", "pool.close()", SIGNAL.format("SIGTERM"), SIGNAL.format("SIGHUP")])
def test_they_and_their_children_end_with_the_program(tmp_path: Path, last: str) -> None:
    process, tag = started(tmp_path, last, "ok", "grandchild", "escape", "stubborn")
    process.wait(HANG)
    assert until(lambda: not alive(tag)), alive(tag)


@pytest.mark.parametrize(
    ("mode", "processes"),
    [("ok", 1), ("stubborn", 1), ("grandchild", 2), ("escape", 2), ("flee", 2), ("flee_twice", 3)],
)
@pytest.mark.parametrize("session", ["run", "shared"])
async def test_a_server_and_its_children_end_with_the_run(mode: str, processes: int, session: Any) -> None:
    """Those too that left the group of their server, and those that emptied their environment."""
    tag = f"callsheet-{uuid.uuid4().hex}"
    pool = SessionPool()
    options = ServerOptions(session=session)
    server = ServerConfig(command=sys.executable, args=(str(FAULTS), mode, "0", tag), callsheet=options)
    assert not (await pool.call("run", "a", server, "work", {})).error
    assert await asyncio.to_thread(until, lambda: len(alive(tag)) == processes)
    await pool.close_run("run")
    if session == "shared":  # it waits for the next run, and ends with the pool
        assert len(alive(tag)) == processes
        await asyncio.to_thread(pool.close)
    assert until(lambda: not alive(tag)), alive(tag)  # a killed process needs a turn of a processor to end


def test_marks_and_starts_tell_processes_apart() -> None:
    marks = [f"{uuid.uuid4().hex}.{number}" for number in (1, 2)]
    children = [subprocess.Popen(["sleep", "600"], env={"A": "1", "MARK": mark}) for mark in marks]
    first, second = (child.pid for child in children)
    try:
        assert until(lambda: set(family(-1, f"MARK={marks[0]}", {})) == {first})
        known = family(second, "MARK=none", {})
        assert set(known) == {second}
        assert set(family(-1, "MARK=none", known)) == {second}
        assert not family(-1, "MARK=none", {second: known[second]._replace(began="another time")})
    finally:
        for child in children:
            child.kill()
            child.wait(HANG)
    assert not family(second, "MARK=none", known)
