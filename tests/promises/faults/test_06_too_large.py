"""Fault 6: a server answers more than anybody wants to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from callsheet.agents import Limits
from servers import CHAOS, FIXTURES

CAP = 5_000_000
PROGRAM = """
import asyncio, json, resource, sys
from callsheet.agents.calls.limits import Limits
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.formats.server_config import ServerConfig

async def main():
    pool = SessionPool(limits=Limits(message={cap}, failures=50))
    small, *large = (ServerConfig(command=sys.executable, args=args) for args in {servers!r})
    await pool.call("run", "small", small, "work", {{}})
    before = peak()
    outcomes = [await pool.call("run", str(i), server, "work", {{}}) for i, server in enumerate(large)]
    await pool.close_run("run")
    print(json.dumps([[[outcome.kind, outcome.effect] for outcome in outcomes], peak() - before]))

def peak():
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024

asyncio.run(main())
"""


async def test_what_is_too_large_costs_its_own_step_only(scenario: Any) -> None:
    made = scenario()
    result = await made.survives("too_large", mode="big", status="outcome_unknown")
    assert "more than 5,000,000 bytes" in result["error"]
    assert (made.folder / "threads.sqlite").stat().st_size < CAP


def test_no_more_is_held_than_the_cap_allows(tmp_path: Path) -> None:
    ours = str(FIXTURES / "fault_server.py")
    servers = [(ours, "ok"), (ours, "big", "10000000"), (ours, "big", "100000000")]
    if CHAOS.is_file():
        servers += [(str(CHAOS), "big", "--size", size) for size in ("10000000", "100000000")]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(cap=CAP, servers=servers))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=120)
    outcomes, rise = json.loads(done.stdout)
    assert outcomes == [["too_large", "unknown"]] * (len(servers) - 1)
    assert rise < 3 * CAP


async def test_a_long_answer_below_the_cap_is_cut_and_kept_outside_the_checkpoint(scenario: Any) -> None:
    made = scenario(limits=Limits(start=60, list=60, call=60, message=100_000_000, output=10_000))
    made.be("faulty", "big")
    state = await made.run()
    (call,) = state["results"]["2"]["calls"]
    assert (call["kind"], call["error"]) == ("too_large", "")
    assert len(call["output"]) < 11_000
    (file,) = call["files"]
    assert Path(file).stat().st_size == 30_000_000
    assert (made.folder / "threads.sqlite").stat().st_size < CAP
    Path(file).unlink()
