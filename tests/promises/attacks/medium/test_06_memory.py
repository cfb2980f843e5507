"""A server that sends without end, or what grows when it is unpacked, fills no memory."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from forked import run_forked
from servers import CHAOS, FIXTURES, until

CAP = 5_000_000
START, CALL = 5, 3
"""Seconds for what floods: who waits meanwhile has been sent many times the cap by then."""
PROGRAM = """
import asyncio, json, resource, sys
from callsheet.agents.calls.call_context import Limits
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.formats.server_config import ServerConfig

async def main():
    pool = SessionPool(limits=Limits(start={start}, list=60, message={cap}, failures=50))
    await pool.call("run", "small", ServerConfig(command=sys.executable, args={small!r}), "work", {{}})
    before = peak()
    for mode, server in {servers!r}.items():
        outcome = await pool.call("run", mode, ServerConfig(**server), "work", {{}})
        await pool.close_run("run")
        print(json.dumps([mode, outcome.kind, outcome.error, peak() - before]))

def peak():
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024

asyncio.run(main())
"""


def outcomes(
    servers: dict[str, dict[str, Any]], *, start: int = 30, call: int = CALL
) -> Iterator[tuple[str, str, str, int]]:
    """Mode, kind and words of a call's error, and by how many bytes the program has grown until then."""
    small = (str(FIXTURES / "fault_server.py"), "ok")
    given = {mode: {**server, "callsheet": {"limits": {"call": call}}} for mode, server in servers.items()}
    program = PROGRAM.format(cap=CAP, start=start, small=small, servers=given)
    done = run_forked(["-c", program])
    told = done.stdout.splitlines()
    assert len(told) == len(servers), done.stderr
    for line in told:
        mode, kind, error, rise = json.loads(line)
        yield mode, kind, error, rise


def test_of_an_answer_that_is_too_large_no_more_is_held_than_the_cap_allows() -> None:
    programs = {"ours": [str(FIXTURES / "fault_server.py"), "big"]}
    if CHAOS.is_file():
        programs["shared"] = [str(CHAOS), "big", "--size"]
    servers = {name: {"command": sys.executable, "args": [*words, str(10 * CAP)]} for name, words in programs.items()}
    for mode, kind, error, rise in outcomes(servers, call=60):
        assert (kind, rise < 3 * CAP) == ("too_large", True), (mode, error, rise)


def test_a_server_that_asks_and_does_not_listen_fills_no_memory() -> None:
    script = str(FIXTURES / "flooding_server.py")
    servers = {mode: {"command": sys.executable, "args": [script, mode]} for mode in ("pings", "asks", "long")}
    for mode, kind, error, rise in outcomes(servers):
        assert kind in ("protocol", "too_large", "timeout"), (mode, error)
        assert rise < 24 * CAP, mode  # an object of Python takes several times its bytes on the wire


@contextmanager
def flooding(mode: str) -> Iterator[str]:
    """An HTTP server that floods; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, str(FIXTURES / "flooding_http_server.py"), str(port), mode]) as process:
        try:
            assert until(lambda: answers(port))
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("transport", ["sse", "http"])
def test_an_answer_over_http_fills_no_memory(transport: str) -> None:
    with ExitStack() as stack:
        servers = {
            mode: {"url": stack.enter_context(flooding(mode)), "transport": transport}
            for mode in (
                "endless",
                "lines",
                "events_bomb",
                *(("json_endless", "json_bomb") if transport == "http" else ()),
            )
        }
        for mode, kind, error, rise in outcomes(servers, start=START if transport == "sse" else 60):
            # The client library has a bound of its own for an event.
            assert kind in ("too_large", "start"), (mode, error)
            assert rise < 12 * CAP, mode
