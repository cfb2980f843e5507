"""The catalog as an MCP server, as an MCP client uses it, also over standard input and output."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Catalog, agent_from_listing
from callsheet.retrievers.selection.budget import SchemaTokens
from commands import run
from forked import Forked
from servers import FIXTURES, HANG

CATALOG = Path(__file__).parents[4] / "examples" / "eval" / "catalog"
GATEWAY = ["find_tools", "read_tools", "call_tool"]


@pytest.mark.parametrize(("options", "more"), [((), []), (("--ask",), ["ask"])])
def test_mcp_prints_with_an_option_what_it_would_serve(
    options: tuple[str, ...], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "mcp", "--catalog", CATALOG, "--json", *options)
    printed = json.loads(out)
    assert status == 0
    assert "16 tools of 4 agents" in printed["instructions"]
    assert [tool["name"] for tool in printed["tools"]] == [*GATEWAY, *more]
    agent, _ = agent_from_listing("callsheet", printed["tools"][:3])
    assert SchemaTokens(Catalog(agents=(agent,))).count(tool.id for tool in agent.tools) < 1000


SERVE = """
from callsheet.__main__ import main
from callsheet.orchestrator.server.gateway import catalog_gateway
catalog_gateway.LATE = 0.2  # seconds for which a search waits for servers that have never answered
main()
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Served:
    """``callsheet mcp`` in a process of its own, spoken to in lines of JSON."""

    def __init__(self, *options: str, **how: Any) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        self.process = Forked(["-c", SERVE, "mcp", "--yes", *options], **pipes)
        self.out: Any = self.process.stdout
        self.heard: list[str] = []

    def ask(self, method: str, **params: Any) -> Any:
        number = len(self.heard) + 1
        assert self.process.stdin
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message, ensure_ascii=False) + "\n")
        self.process.stdin.flush()
        while (answer := self.read()).get("id") != number:
            pass
        return answer["result"]

    def read(self) -> dict[str, Any]:
        """The next message."""
        message: dict[str, Any] = json.loads(next(line for line in self.out if line.startswith("{")))
        self.heard.append(message.get("method", ""))
        return message

    def call(self, name: str, **arguments: Any) -> str:
        return str(self.ask("tools/call", name=name, arguments=arguments)["content"][0]["text"])


GATED = """
import os, runpy, sys, time
gate, sys.argv = sys.argv[1], sys.argv[2:]
while not os.path.exists(gate):
    time.sleep(0.05)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.server
def test_a_client_is_greeted_at_once_whatever_the_servers_do(tmp_path: Path) -> None:
    """None of the three servers would be waited for within the hour."""
    gate, fault, patience = tmp_path / "gate", str(FIXTURES / "fault_server.py"), {"limits": {"start": 3600}}
    entries: dict[str, Any] = {
        "hangs": {"command": sys.executable, "args": [fault, "hang_init"], "callsheet": patience},
        "opens": {"command": sys.executable, "args": ["-c", GATED, str(gate), fault, "ok"], "callsheet": patience},
    }
    how: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, "CALLSHEET_HOME": str(tmp_path / "home")}}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        entries["silent"] = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/mcp", "callsheet": patience}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
        served = Served("--catalog", "mcp.json", **how)
        assert served.ask("initialize", **HELLO)["instructions"].startswith("0 tools of 0 agents")
        served.ask("tools/list")
        gate.touch()
        while served.heard[-1] != "notifications/tools/list_changed":
            served.read()
        while "opens/work" not in served.call("find_tools", query="do the work"):
            time.sleep(0.1)
        served.process.communicate()
        gate.unlink()
        served = Served("--catalog", "mcp.json", **how)
        assert served.ask("initialize", **HELLO)["instructions"].startswith("1 tool of 1 agent")
        assert "opens/work" in served.call("find_tools", query="do the work")
        served.process.communicate()


@pytest.mark.server
def test_ctrl_c_ends_the_gateway_on_standard_input(tmp_path: Path) -> None:
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
LONG = "ä" * 200_000  # more than a pipe holds, in both directions


@pytest.mark.server
@pytest.mark.parametrize("shared", [False, True])
def test_long_messages_arrive_whole_and_prints_do_not_disturb_the_protocol(shared: bool, tmp_path: Path) -> None:
    """If standard error is the same pipe as the output, the pipe must not become non-blocking."""
    (tmp_path / "doubling.py").write_text(SERVED)
    options = ["--catalog", "doubling:tools", "--index", ":memory:", "--approval", "never"]
    how: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, "CALLSHEET_LIMIT_OUTPUT": "1000000"}}
    if shared:
        ours, theirs = os.pipe()
        served = Served(*options, **how, stdout=theirs, stderr=theirs)
        os.close(theirs)
        served.out = open(ours, encoding="utf-8")  # noqa: PTH123, SIM115
    else:
        served = Served(*options, **how)
    assert served.ask("initialize", **HELLO)["serverInfo"]["name"] == "callsheet"
    for text in ("a", LONG, "b"):
        assert text * 2 in served.call("call_tool", tool="doubles/double", arguments={"text": text})
    assert served.process.stdin
    served.process.stdin.close()
    with served.out as out:
        rest = out.read()
    assert served.process.wait(HANG) == 0
    assert not rest.startswith("{")
    if served.process.stderr:
        assert rest == ""
        assert served.process.stderr.read().count("stray") == 3
        served.process.stderr.close()
