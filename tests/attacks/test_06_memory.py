"""A server that sends without end, or what grows when it is unpacked, fills no memory."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from servers import FIXTURES, HANG, until

CAP = 5_000_000
PROGRAM = """
import asyncio, json, resource, sys
from callsheet.agents.limits import Limits
from callsheet.agents.sessions import SessionPool
from callsheet.graphs.mcp import ServerConfig

async def main():
    pool = SessionPool(limits=Limits(start=30, list=60, call=20, message={cap}, failures=50))
    await pool.call("run", "small", ServerConfig(command=sys.executable, args={small!r}), "work", {{}})
    before = peak()
    outcome = await pool.call("run", "large", ServerConfig(**{server!r}), "work", {{}})
    await pool.close_run("run")
    print(json.dumps([outcome.kind, outcome.error, peak() - before]))

def peak():
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024

asyncio.run(main())
"""


def outcome(tmp_path: Path, server: dict[str, object]) -> tuple[str, str, int]:
    """Kind and words of a call's error, and by how many bytes the program grew meanwhile."""
    program = tmp_path / "program.py"
    small = (str(FIXTURES / "fault_server.py"), "ok")
    program.write_text(PROGRAM.format(cap=CAP, small=small, server=server))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=HANG)
    kind, error, rise = json.loads(done.stdout)
    return kind, error, rise


@pytest.mark.parametrize("mode", ["pings", "asks", "long"])
def test_a_server_that_asks_and_does_not_listen_fills_no_memory(tmp_path: Path, mode: str) -> None:
    server = {"command": sys.executable, "args": [str(FIXTURES / "flooding_server.py"), mode]}
    kind, error, rise = outcome(tmp_path, server)
    assert kind in ("protocol", "too_large", "timeout"), error
    assert rise < 24 * CAP  # an object of Python takes several times its bytes on the wire


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("mode", ["endless", "lines", "events_bomb"])
@pytest.mark.parametrize("transport", ["sse", "http"])
def test_an_answer_over_http_fills_no_memory(tmp_path: Path, transport: str, mode: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(FIXTURES / "flooding_http_server.py"), str(port), mode]
    with subprocess.Popen(command) as process:
        try:
            assert until(lambda: answers(port))
            kind, error, rise = outcome(tmp_path, {"url": f"http://127.0.0.1:{port}/mcp", "transport": transport})
        finally:
            process.kill()
    assert kind in ("too_large", "start"), error  # the client library has a bound of its own for an event
    assert rise < 12 * CAP
