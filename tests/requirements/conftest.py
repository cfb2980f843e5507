"""Servers whose words a test can change, and what they were sent."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from callsheet.orchestrator.nodes import Nodes

SERVER = Path(__file__).parents[1] / "fixtures" / "changing_server.py"


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
        words = [str(SERVER), str(self.folder / f"{name}.json"), str(self.folder / f"{name}.log")]
        self._servers[name] = {"command": sys.executable, "args": words, **(entry or {})}
        self.config.write_text(json.dumps({"mcpServers": self._servers}))
        return self.config

    def later(self, name: str, *tools: dict[str, Any]) -> None:
        """What a server says once it has been called, which it announces."""
        (self.folder / f"{name}.next").write_text(json.dumps({"tools": tools}))

    def sent(self, name: str) -> list[dict[str, Any]]:
        """All messages that a server got."""
        log = self.folder / f"{name}.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def bytes_sent(self, name: str) -> int:
        """How many bytes a server got, in all of its lives."""
        log = self.folder / f"{name}.log"
        return log.stat().st_size if log.exists() else 0

    def calls(self, name: str) -> list[str]:
        """The tools that a server was called for."""
        return [message["params"]["name"] for message in self.sent(name) if message.get("method") == "tools/call"]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """An empty fleet, with a home of its own for agreements, pins and indexes."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    for name in ("CALLSHEET_YES", "CALLSHEET_PINS", "CALLSHEET_POLICY", "CALLSHEET_CATALOG"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "fleet"
    folder.mkdir()
    return Fleet(folder)


class PowerCut(BaseException):
    """What no handler may swallow."""


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a request and cuts the program off when tools were picked and their worker is about to start."""

    async def start(workflow: Any, request: str, memory: Any, config: Any) -> None:
        def cut(*_: Any) -> Any:
            raise PowerCut

        with monkeypatch.context() as patch:
            patch.setattr(Nodes, "_worked", cut)
            with pytest.raises(PowerCut):
                await workflow.compile(checkpointer=memory).ainvoke({"messages": [HumanMessage(request)]}, config)

    return start


@pytest.fixture
def tool() -> Any:
    """Makes a tool as a server sends it."""
    return definition
