"""A newcomer who follows the page on deployment has two processes over one Postgres."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from mcp import Client

from callsheet.orchestrator.cli.main import main
from fleet import Fleet, definition
from local_gateway import said

pytestmark = [pytest.mark.server, pytest.mark.slow]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "deploy.md"
ADDRESS = "postgresql://postgres:secret@localhost:5432/postgres"
PATIENCE = 180
"""Seconds; a server that has not answered in eight is asked again after a minute."""
OUTSIDE = ("docker ", "pip ")
"""The database is the tests' own, and Callsheet is installed."""


def terminals(store: str) -> list[str]:
    """What the page says to type into each terminal, with another database and free ports."""
    (section,) = re.findall(r"### Two servers on this machine\n(.*?)\n## ", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    blocks = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    scripts = []
    for block in blocks:
        lines = [line.removeprefix("$ ") for line in block.splitlines()]
        assert f"export CALLSHEET_STORE={ADDRESS}" in lines
        ours = "\n".join(line for line in lines if not line.startswith(OUTSIDE))
        scripts.append(re.sub(r"--port \d+", lambda _: f"--port {free_port()}", ours.replace(ADDRESS, f"'{store}'")))
    return scripts


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def typed(script: str, folder: Path) -> Iterator[str]:
    """Runs the lines of a terminal until the last one serves; gives its address."""
    log = (folder / f"log {time.monotonic_ns()}").open("w+")
    shell = subprocess.Popen(["bash", "-ec", script], cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        address = f"http://127.0.0.1:{script.split('--port ')[1].split(maxsplit=1)[0]}/mcp"
        end = time.monotonic() + PATIENCE
        while address not in (told := Path(log.name).read_text()):
            assert shell.poll() is None, told
            assert time.monotonic() < end, told
            time.sleep(0.1)
        yield address
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        log.close()


def found(address: str, query: str) -> str:
    async def ask() -> str:
        async with Client(address) as client:
            return said(await client.call_tool("find_tools", {"query": query}))

    return asyncio.run(ask())


def test_two_processes_over_one_database(tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLSHEET_STORE")
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_YES", "1")  # what a person answers
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    fleet, forecast = Fleet(tmp_path), definition("forecast", "The weather forecast of a place.")
    fleet.serve("weather", forecast)
    first, second, third = terminals(store)
    with ExitStack() as stack:
        one = stack.enter_context(typed(first, tmp_path))
        end = time.monotonic() + PATIENCE
        while "weather/forecast" not in found(one, "weather forecast"):  # it greets before the server has answered
            assert time.monotonic() < end
            time.sleep(0.2)
        listed = fleet.bytes_sent("weather")
        both = [one, stack.enter_context(typed(second, tmp_path))]
        assert fleet.bytes_sent("weather") == listed
        assert ["weather/forecast" in found(each, "weather forecast") for each in both] == [True, True]
        fleet.serve("weather", forecast, definition("tide_table", "The times of high and low tide at a harbour."))
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("CALLSHEET_STORE", store)
        for line in third.splitlines()[1:]:  # in this process, which has all modules loaded
            program, *words = shlex.split(line)
            assert program == "callsheet"
            with pytest.raises(SystemExit):
                main(words)
        end = time.monotonic() + PATIENCE
        while not all("weather/tide_table" in found(each, "times of high tide") for each in both):
            assert time.monotonic() < end
            time.sleep(0.2)
