"""A gateway over a real server, as a client uses it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp import Client, types

from callsheet.agents import ToolRegistry
from callsheet.graphs import load
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller, Gateway
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings

SERVER = Path(__file__).parents[2] / "fixtures" / "working_server.py"
Elicited = Callable[[Any, types.ElicitRequestParams], Awaitable[types.ElicitResult]]


def said(result: types.CallToolResult) -> str:
    """The text of a result."""
    (first, *_) = result.content
    assert isinstance(first, types.TextContent)
    return first.text


class Desk:
    """A gateway over one server, and what that server wrote down."""

    def __init__(self, folder: Path, minilm: MiniLMEmbeddings) -> None:
        self._log = folder / "log"
        entry = {"command": sys.executable, "args": [str(SERVER), str(self._log)], "callsheet": {"trusted": True}}
        config = folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"works": entry}}))
        loaded = load(config, yes=True)
        retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:", embeddings=minilm)
        self.registry = ToolRegistry.from_catalog(loaded)
        self.gateway = Gateway(retriever, self.registry)
        self.server = GatewayServer(self.gateway, lambda context: Caller("desk")).server

    def client(self, mode: str = "auto", elicited: Elicited | None = None, server: Any = None, **more: Any) -> Client:
        options: dict[str, Any] = {"mode": mode, "elicitation_callback": elicited, **more}
        return Client(server or self.server, **options)

    @property
    def log(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    def clear(self) -> None:
        self._log.unlink(missing_ok=True)


async def logged(desk: Desk, lines: list[str]) -> None:
    """Waits until the server has written this down."""
    async with asyncio.timeout(20):
        while desk.log != lines:
            await asyncio.sleep(0.02)
