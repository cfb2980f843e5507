"""No process of a server outlives the program, or its run; one that is killed leaves only what ignores its end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import sysconfig
import uuid
from pathlib import Path
from typing import Any

import pytest

from callsheet.agents.calls.outcome import Fault
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.agents.servers.transport.stdio import environment_of, family, program_of
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
sys.stdin.readline()
{last}
"""


def started(tmp_path: Path, last: str, *modes: str) -> tuple[subprocess.Popen[bytes], str]:
    """A program that holds a session with a server in each of these modes, and the tag of their processes."""
    tag = f"callsheet-{uuid.uuid4().hex}"
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(faults=str(FAULTS), tag=tag, modes=modes, last=last))
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "bufsize": 0}
    process = subprocess.Popen([sys.executable, str(script)], **pipes)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert len(alive(tag)) >= len(modes)
    process.stdin.write(b"go on\n")
    return process, tag


def test_servers_end_with_their_input_when_the_program_is_killed(tmp_path: Path) -> None:
    process, tag = started(tmp_path, "import time; time.sleep(600)", "ok", "ok")
    process.kill()
    process.wait(HANG)
    assert until(lambda: not alive(tag)), alive(tag)


SIGNAL = """
import os, signal
from callsheet.__main__ import exit_on_signals
exit_on_signals()
os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.parametrize("last", ["", "pool.close()", SIGNAL])
def test_servers_and_their_children_end_with_the_program(tmp_path: Path, last: str) -> None:
    process, tag = started(tmp_path, last, "ok", "grandchild", "escape", "stubborn")
    process.wait(HANG)
    assert until(lambda: not alive(tag)), alive(tag)


@pytest.mark.parametrize(
    ("mode", "processes", "session"),
    [
        *((mode, 1, "run") for mode in ("ok", "stubborn")),
        *((mode, 2, "run") for mode in ("grandchild", "escape", "flee")),
        *(("flee_twice", 3, session) for session in ("run", "shared")),
    ],
)
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


def test_a_server_finds_the_certificates_of_the_company_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/company.pem")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/etc/company.pem")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-71")
    monkeypatch.setenv("HTTPS_PROXY", "http://ann:canary-72@proxy:3128")
    found = environment_of(ServerConfig(command="x", env={"SSL_CERT_FILE": "/its/own.pem"}))
    assert found["NODE_EXTRA_CA_CERTS"] == "/etc/company.pem"
    assert found["SSL_CERT_FILE"] == "/its/own.pem"
    assert "canary" not in str(found)


@pytest.mark.parametrize(
    ("command", "cure"),
    [
        ("uvx", "pip install uv"),
        ("npx", "install Node.js"),
        ("no-such-program", "install it or correct the path"),
        (f"{sys.executable} -m server", "'-m server' word by word in 'args'"),
        ("no-such-program serve", "install it or correct the path"),
        ("", "install it or correct the path"),
    ],
)
def test_a_missing_program_is_an_error_with_a_cure(
    command: str, cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(Fault, match="was not found") as raised:
        program_of(command, {"PATH": str(tmp_path)})
    assert cure in str(raised.value)


def test_a_program_is_found_in_the_path_or_beside_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert program_of(sys.executable, {}) == sys.executable
    (beside := tmp_path / "uvx").touch(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    assert program_of("uvx", {"PATH": "/nowhere"}) == str(beside)
