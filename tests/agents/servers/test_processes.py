"""No process that Callsheet started outlives the run, or Callsheet itself, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from callsheet.agents.servers.session_pool import SessionPool
from callsheet.agents.servers.transport.reaper import Reaper
from callsheet.agents.servers.transport.reaper_process import MARK, end_all, marked
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from servers import FIXTURES, HANG, alive, until

FAULTS = FIXTURES / "fault_server.py"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="process groups and marks are POSIX")
PROGRAM = """
import asyncio, sys
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.formats.server_config import ServerConfig

async def main():
    servers = [ServerConfig(command=sys.executable, args=({faults!r}, mode, "0", {tag!r})) for mode in {modes!r}]
    calls = [pool.call("run", str(i), server, "work", {{}}) for i, server in enumerate(servers)]
    await asyncio.gather(*calls)

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
def test_servers_and_their_children_end_when_the_program_is_killed(tmp_path: Path, number: int) -> None:
    process, tag = started(tmp_path, "import time; time.sleep(600)", "ok", "grandchild", "escape", "stubborn")
    process.send_signal(number)
    process.wait(HANG)
    assert until(lambda: not alive(tag)), alive(tag)


@pytest.mark.parametrize("last", ["", "1 / 0", "import os; os._exit(1)"])
def test_they_end_with_the_program(tmp_path: Path, last: str) -> None:
    process, tag = started(tmp_path, last, "ok", "grandchild", "escape")
    process.wait(HANG)
    assert until(lambda: not alive(tag)), alive(tag)


async def test_a_child_that_left_its_servers_group_ends_with_the_run() -> None:
    tag = f"callsheet-{uuid.uuid4().hex}"
    pool = SessionPool()
    server = ServerConfig(command=sys.executable, args=(str(FAULTS), "escape", "0", tag))
    assert not (await pool.call("run", "a", server, "work", {})).error
    assert len(alive(tag)) == 2
    await pool.close_run("run")
    assert until(lambda: not alive(tag)), alive(tag)  # a killed process needs a turn of a processor to end


def test_a_forked_child_does_not_keep_the_servers_of_its_parent(tmp_path: Path) -> None:
    child = tmp_path / "child"
    fork = (
        "import os, time\nif os.fork() == 0:\n"
        f"    open({str(child)!r}, 'w').write(str(os.getpid()))\n    time.sleep(600)\n    os._exit(0)\n"
        f"while not os.path.exists({str(child)!r}) or not os.path.getsize({str(child)!r}): time.sleep(.01)\n"
        "os.kill(os.getpid(), 9)"
    )
    process, tag = started(tmp_path, fork, "ok")
    process.wait(HANG)
    try:
        assert until(lambda: not alive(tag)), alive(tag)
    finally:
        os.kill(int(child.read_text()), signal.SIGKILL)  # it was there all the time


def test_a_reaper_that_was_killed_is_replaced_and_knows_what_was_started() -> None:
    reaper = Reaper()
    first = reaper.mark()
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    reaper.watch(child.pid)
    assert reaper._process is not None
    reaper._process.kill()
    reaper._process.wait(HANG)
    second = reaper.mark()
    assert first.partition(".")[0] == second.partition(".")[0]
    assert first != second
    reaper.close()
    assert child.wait(HANG) != 0


def test_marks_tell_processes_apart() -> None:
    name = uuid.uuid4().hex
    children = [subprocess.Popen(["sleep", "600"], env={"A": "1", MARK: f"{name}.{number}."}) for number in (1, 10, 2)]
    try:
        assert until(lambda: len(marked(name)) == 3)
        assert marked(f"{name}.1.") == [children[0].pid]
    finally:
        end_all(set(), f"{name}.1.")
        assert children[0].wait(HANG) == -signal.SIGTERM
        end_all(set(), name)
        assert [child.wait(HANG) for child in children[1:]] == [-signal.SIGTERM] * 2
