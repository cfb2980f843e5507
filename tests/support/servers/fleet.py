"""Servers whose words a test can change, and what they were sent."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

SERVER = Path(__file__).parents[2] / "fixtures" / "changing_server.py"


def definition(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    """A tool as a server sends it."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    return {"name": name, "description": description or f"Does {name}.", "inputSchema": schema, **more}


class Fleet:
    """Servers in one ``mcp.json``; each says what it is told to, and what it gets is written down."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "mcp.json"
        self._servers: dict[str, Any] = {}

    def serve(self, name: str, *tools: dict[str, Any], entry: dict[str, Any] | None = None, **more: Any) -> Path:
        """Adds a server, or changes what it says from its next listing on; gives the ``mcp.json``."""
        script = {"tools": tools, **more}
        (self.folder / f"{name}.json").write_text(json.dumps(script))
        words = ["-S", str(SERVER), str(self.folder / f"{name}.json"), str(self.folder / f"{name}.log")]
        self._servers[name] = {"command": sys.executable, "args": words, **(entry or {})}
        self.config.write_text(json.dumps({"mcpServers": self._servers}))
        return self.config

    def later(self, name: str, *tools: dict[str, Any]) -> None:
        """What a server says once it has been called, which it announces."""
        (self.folder / f"{name}.next").write_text(json.dumps({"tools": tools}))

    def sent(self, name: str) -> list[dict[str, Any]]:
        """All messages that a server got."""
        log = self.folder / f"{name}.log"
        # A line ends at a line feed only: a text may hold other separators.
        return [json.loads(line) for line in log.read_text().split("\n") if line] if log.exists() else []

    def bytes_sent(self, name: str) -> int:
        """How many bytes a server got, in all of its lives."""
        log = self.folder / f"{name}.log"
        return log.stat().st_size if log.exists() else 0

    def calls(self, name: str) -> list[str]:
        """The tools that a server was called for."""
        return [message["params"]["name"] for message in self.sent(name) if message.get("method") == "tools/call"]


def empty_fleet(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A fleet with a home of its own for agreements, pins and indexes; every reading asks its servers."""
    monkeypatch.setenv("CALLSHEET_HOME", str(folder / "home"))
    for name in ("CALLSHEET_YES", "CALLSHEET_PINS", "CALLSHEET_POLICY", "CALLSHEET_CATALOG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CALLSHEET_LIMIT_FRESH", "0")
    (folder / "fleet").mkdir()
    return Fleet(folder / "fleet")
