"""Children of a server that leave its session and empty their environment: they do not outlive the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from callsheet.agents.servers.session_pool import SessionPool
from callsheet.agents.servers.transport.reaper_process import end_family, grown
from callsheet.graphs.catalog.formats.server_config import ServerConfig

FAULTS = Path(__file__).parents[3] / "fixtures" / "fault_server.py"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="parents of processes are read as POSIX has them")
PROGRAM = """
import asyncio, os, sys, time
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.formats.server_config import ServerConfig

server = ServerConfig(command=sys.executable, args=({faults!r}, {mode!r}, "0", {tag!r}))
asyncio.run(SessionPool().call("run", "a", server, "work", {{}}))
print("ready", flush=True)
time.sleep(600)
"""


def tagged(tag: str) -> list[str]:
    listed = subprocess.run(["ps", "-axwwo", "command="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if tag in line]


def within(seconds: float, tag: str, count: int) -> bool:
    """Whether there come to be so many processes with this tag."""
    deadline = time.monotonic() + seconds
    while len(tagged(tag)) != count and time.monotonic() < deadline:
        time.sleep(0.1)
    return len(tagged(tag)) == count


@pytest.mark.parametrize(("mode", "processes"), [("flee", 2), ("flee_twice", 3)])
async def test_they_end_with_the_run(mode: str, processes: int) -> None:
    tag = f"callsheet-{uuid.uuid4().hex}"
    pool = SessionPool()
    server = ServerConfig(command=sys.executable, args=(str(FAULTS), mode, "0", tag))
    assert not (await pool.call("run", "a", server, "work", {})).error
    assert within(30, tag, processes)
    await pool.close_run("run")
    assert tagged(tag) == []


def test_they_end_when_the_program_is_killed(tmp_path: Path) -> None:
    tag = f"callsheet-{uuid.uuid4().hex}"
    (tmp_path / "program.py").write_text(PROGRAM.format(faults=str(FAULTS), mode="flee_twice", tag=tag))
    program = [sys.executable, str(tmp_path / "program.py")]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert within(30, tag, 3)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert within(30, tag, 0), tagged(tag)


def test_an_id_that_was_given_anew_is_not_taken_for_the_old_process() -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        assert child.pid in grown({os.getpid(): ""})
        assert not end_family({child.pid: "another time"}, signal.SIGKILL)
        assert child.poll() is None
        assert end_family({child.pid: ""}, signal.SIGKILL)
        assert child.wait(30) == -signal.SIGKILL
        assert grown({child.pid: ""}) == {}
    finally:
        child.kill()
