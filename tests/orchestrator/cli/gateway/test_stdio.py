"""Serving tools over standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.server
SERVED = """
import asyncio
from langchain_core.tools import tool
from callsheet.orchestrator.cli.documents import tool_server
from callsheet.orchestrator.cli.mcp import serve_stdio

@tool
def double(text: str) -> str:
    "Twice the text."
    print("stray", flush=True)
    return text * 2

asyncio.run(serve_stdio(tool_server("doubles", [double])))
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
LONG = "ä" * 200_000  # more than a pipe holds, in both directions


@pytest.mark.parametrize("errors", [subprocess.PIPE, subprocess.STDOUT], ids=["own", "shared"])
def test_long_messages_and_stray_prints(errors: int) -> None:
    """If standard error is the same pipe as the output, the pipe must not become non-blocking."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
    with subprocess.Popen([sys.executable, "-c", SERVED], **pipes) as served:
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

        assert asked(1, "initialize", HELLO)["result"]["serverInfo"]["name"] == "doubles"
        for number, text in enumerate(("a", LONG, "b"), 2):
            answer = asked(number, "tools/call", {"name": "double", "arguments": {"text": text}})
            assert answer["id"] == number
            assert answer["result"]["content"][0]["text"] == text * 2
        served.stdin.close()
        rest = served.stdout.read()
        assert served.wait(20) == 0
        assert not rest.startswith(b"{")
        if served.stderr:
            assert served.stderr.read().split() == [b"stray"] * 3
            assert rest == b""
