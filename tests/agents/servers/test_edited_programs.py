"""A server that waits for the next run is started anew if its program was edited meanwhile."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.agents.servers.transport.program_files import stamps_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from servers import HANG

SERVER = """
import json, os, sys
from part import WORD
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "a", "version": "1"}},
        "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": f"{WORD} {os.getpid()}"}]},
    }.get(asked["method"])
    said = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


@pytest.fixture
def pool() -> Iterator[SessionPool]:
    pool = SessionPool(limits=Limits(start=HANG, list=HANG, call=HANG))
    yield pool
    pool.close()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "server.py").write_text(SERVER)
    (folder / "part.py").write_text("WORD = 'first'\n")
    (folder / "data.sqlite").write_text("1")
    return folder


def by_path(folder: Path) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=("-B", str(folder / "server.py"), str(folder / "data.sqlite")))


def by_folder(folder: Path) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=("-B", "server.py"), cwd=str(folder))


def by_module(folder: Path) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=("-B", "-m", "server"), cwd=str(folder))


async def called(pool: SessionPool, server: ServerConfig, run: str) -> str:
    outcome = await pool.call(run, "a", server, "work", {})
    assert not outcome.error
    await pool.close_run(run)
    return outcome.text


@pytest.mark.parametrize("server", [by_path, by_folder, by_module])
async def test_a_program_that_was_not_edited_goes_on(
    pool: SessionPool, program: Path, server: Callable[[Path], ServerConfig]
) -> None:
    first = await called(pool, server(program), "1")
    (program / "data.sqlite").write_text("another")
    assert await called(pool, server(program), "2") == first


@pytest.mark.parametrize("server", [by_path, by_folder, by_module])
@pytest.mark.parametrize("edited", ["server.py", "part.py"])
async def test_an_edited_program_is_started_anew(
    pool: SessionPool, program: Path, server: Callable[[Path], ServerConfig], edited: str
) -> None:
    word, first = (await called(pool, server(program), "1")).split()
    file = program / edited
    file.write_text(file.read_text().replace("first", "second") + "\n")
    new, second = (await called(pool, server(program), "2")).split()
    assert second != first
    assert (word, new) == ("first", "second" if edited == "part.py" else "first")


def test_the_files_of_a_command_are_those_that_are_code(tmp_path: Path) -> None:
    for name in ("server.js", "part.js", "note.py", "data.json", "run"):
        (tmp_path / name).write_text("x")
    (tmp_path / "run").chmod(0o755)

    def named(*args: str, cwd: Path | None = tmp_path) -> set[str]:
        server = ServerConfig(command="node", args=args, cwd=str(cwd) if cwd else None)
        return {Path(path).name for path, _, _ in stamps_of(server, os.devnull)} - {"null"}

    assert named("server.js", "data.json") == {"server.js", "part.js"}
    assert named("--directory", str(tmp_path), "note.py", cwd=None) == {"note.py"}
    assert named(f"--require={tmp_path}/part.js", cwd=None) == {"server.js", "part.js"}
    assert named("./run", "data.json") == {"run"}
    assert named("\0", "x" * 5_000, "-m", "..", "data.json") == set()
