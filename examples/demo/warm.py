"""Fetch the demo's MCP servers and start each once: ``python -m examples.demo.warm`` (exit status 0 or 1).

``mcp.json`` starts them with ``uvx --offline``, so that a run never waits for the network. Where that fails,
this runs the same command without that word, which fills uv's cache.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

LIMIT = 180  # seconds for one server, the download included
HELLO: list[dict[str, Any]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "warm", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
]


def count_tools(command: list[str]) -> int:
    """Start an MCP server and ask for its tools.

    Raises:
        RuntimeError: It did not answer; the text is the end of what it wrote to standard error.
    """
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        timer = threading.Timer(LIMIT, process.kill)
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            for message in HELLO:
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line) if line.startswith("{") else {}
                if answer.get("id") == 2:
                    return len(answer["result"]["tools"])
        except BrokenPipeError:
            pass  # it ended before it had read everything: its log says why
        finally:
            timer.cancel()
            process.kill()
            process.wait()
        log.seek(0)
        raise RuntimeError("".join(log.readlines()[-8:]).strip() or f"no answer within {LIMIT} seconds")


def warm(program: str, words: list[str]) -> int:
    """The number of tools of a server, fetched if it is not here yet."""
    try:
        return count_tools([program, *words])
    except RuntimeError:
        return count_tools([program, *(word for word in words if word != "--offline")])


def main() -> int:
    """Warm every server of ``mcp.json``, saying what was done."""
    servers = json.loads((Path(__file__).parent / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]
    for name, server in servers.items():
        if "command" not in server:  # documents, a toolkit: there is nothing to fetch
            continue
        package = next(word for word in server["args"] if "==" in word)
        print(f"  {name}: {package} ...", end="", flush=True)
        start = time.monotonic()
        try:
            tools = warm(server["command"], server["args"])
        except (OSError, RuntimeError) as error:
            started = " ".join([server["command"], *server["args"]])
            print(f" failed\n\n{error}\n\nThe demo's server {name} did not start: {started}")
            print("It is fetched from the Python package index: is the network there?")
            return 1
        print(f" {tools} tools, {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
