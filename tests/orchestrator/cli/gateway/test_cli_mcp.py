"""The catalog as an MCP server, as an MCP client uses it, also over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, types

from callsheet.graphs import Catalog, agent_from_listing
from callsheet.retrievers.selection.budget import SchemaTokens
from commands import run
from forked import Forked
from gateway_desk import said
from servers import FIXTURES, HANG

CATALOG = Path(__file__).parents[4] / "examples" / "eval" / "catalog"
GATEWAY = ["find_tools", "read_tools", "call_tool"]


@pytest.mark.parametrize(("options", "more"), [((), []), (("--ask",), ["ask"])])
def test_what_it_would_serve_is_printed(
    options: tuple[str, ...], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "mcp", "--catalog", CATALOG, "--json", *options)
    printed = json.loads(out)
    assert status == 0
    assert "16 tools of 4 agents" in printed["instructions"]
    assert [tool["name"] for tool in printed["tools"]] == [*GATEWAY, *more]
    agent, _ = agent_from_listing("callsheet", printed["tools"][:3])
    assert SchemaTokens(Catalog(agents=(agent,))).count(tool.id for tool in agent.tools) < 1000


GATED = """
import os, runpy, sys, time
gate, sys.argv = sys.argv[1], sys.argv[2:]
while not os.path.exists(gate):
    time.sleep(0.05)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.server
async def test_a_client_is_greeted_at_once_whatever_the_servers_do(tmp_path: Path) -> None:
    """None of the three servers would be waited for within the hour."""
    gate, fault, patience = tmp_path / "gate", str(FIXTURES / "fault_server.py"), {"limits": {"start": 3600}}
    entries: dict[str, Any] = {
        "hangs": {"command": sys.executable, "args": [fault, "hang_init"], "callsheet": patience},
        "opens": {"command": sys.executable, "args": ["-c", GATED, str(gate), fault, "ok"], "callsheet": patience},
    }
    with socket.create_server(("127.0.0.1", 0)) as silent:
        entries["silent"] = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/mcp", "callsheet": patience}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "callsheet", "mcp", "--catalog", "mcp.json", "--yes"],
            cwd=tmp_path,
            env={**os.environ, "CALLSHEET_HOME": str(tmp_path / "home")},
        )
        heard = asyncio.Event()

        async def listen(message: object) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                heard.set()

        query: dict[str, Any] = {"query": "do the work"}
        async with Client(server, mode="legacy", message_handler=listen, read_timeout_seconds=HANG) as client:
            assert client.instructions
            assert client.instructions.startswith("0 tools of 0 agents")
            await client.list_tools()
            gate.touch()
            async with asyncio.timeout(HANG):
                await heard.wait()
                while "opens/work" not in said(await client.call_tool("find_tools", query)):
                    await asyncio.sleep(0.1)
        gate.unlink()
        async with Client(server, read_timeout_seconds=HANG) as client:
            assert client.instructions
            assert client.instructions.startswith("1 tool of 1 agent")
            assert "opens/work" in said(await client.call_tool("find_tools", query))


@pytest.mark.server
def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    words = ["-m", "callsheet", "mcp", "--catalog", str(CATALOG), "--index", str(tmp_path / "index")]
    pipe = subprocess.PIPE
    program = Forked(words, stdin=pipe, stdout=pipe, stderr=pipe)
    assert program.stderr
    while "serving" not in (line := program.stderr.readline()):
        assert line
    program.send_signal(signal.SIGINT)
    assert program.wait(120) == 130


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--tokens", "tokens.json"], "need --http"),
        (["--http", "--tokens", "tokens.json"], "cannot be read: No such file"),
        (["--http", "--issuer", "https://id.example"], "--issuer needs --url"),
        (["--http", "--issuer", "https://id.example", "--url", "bar"], "--url must be an address"),
        (["--http", "--host", "0.0.0.0"], "everybody who reaches this machine could call the tools"),
        (["--http", "--host", "nowhere.invalid"], "everybody who reaches this machine could call the tools"),
    ],
)
def test_wrong_options_are_refused(
    options: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = run(capsys, "mcp", "--catalog", CATALOG, *options)
    assert status == 2
    assert told in " ".join(err.split())


SERVED = """
from langchain_core.tools import tool

@tool
def double(text: str) -> str:
    "Twice the text."
    print("stray", flush=True)
    return text * 2

tools = {"doubles": [double]}
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
LONG = "ä" * 200_000  # more than a pipe holds, in both directions


@pytest.mark.server
@pytest.mark.parametrize("errors", [subprocess.PIPE, subprocess.STDOUT], ids=["own", "shared"])
def test_long_messages_and_stray_prints(errors: int, tmp_path: Path) -> None:
    """If standard error is the same pipe as the output, the pipe must not become non-blocking."""
    (tmp_path / "doubling.py").write_text(SERVED)
    words = [sys.executable, "-m", "callsheet", "mcp", "--catalog", "doubling:tools", "--index", ":memory:"]
    env = {
        **os.environ,
        "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}",
        "CALLSHEET_LIMIT_OUTPUT": "1000000",
    }
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors, "env": env}
    with subprocess.Popen([*words, "--yes", "--approval", "never"], **pipes) as served:
        assert served.stdin
        assert served.stdout

        def asked(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
            assert served.stdin
            assert served.stdout
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            served.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
            served.stdin.flush()
            line = next(line for line in served.stdout if line.startswith(b"{"))
            found: dict[str, Any] = json.loads(line)
            return found

        assert asked(1, "initialize", HELLO)["result"]["serverInfo"]["name"] == "callsheet"
        for number, text in enumerate(("a", LONG, "b"), 2):
            call = {"tool": "doubles/double", "arguments": {"text": text}}
            answer = asked(number, "tools/call", {"name": "call_tool", "arguments": call})
            assert answer["id"] == number
            assert text * 2 in answer["result"]["content"][0]["text"]
        served.stdin.close()
        rest = served.stdout.read()
        assert served.wait(20) == 0
        assert not rest.startswith(b"{")
        if served.stderr:
            assert served.stderr.read().count(b"stray") == 3
            assert rest == b""
