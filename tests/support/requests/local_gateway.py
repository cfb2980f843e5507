"""A gateway over a real server, as a client uses it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp import Client, types

from callsheet.agents import ToolRegistry
from callsheet.graphs import Policy, load
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


APPROVED = types.ElicitResult(action="accept", content={"decision": "approve"})


def answering(answer: types.ElicitResult, heard: list[Any] | None = None) -> Elicited:
    """A person who gives this answer to every question; the questions are noted in ``heard``."""

    async def elicited(context: Any, request: types.ElicitRequestParams) -> types.ElicitResult:
        if heard is not None:
            heard.append(request)
        return answer

    return elicited


class LocalGateway:
    """A gateway over one server, or the same one under several names, and what the first of them wrote down."""

    def __init__(
        self,
        folder: Path,
        minilm: MiniLMEmbeddings,
        *,
        names: Sequence[str] = ("works",),
        server: Path = SERVER,
        trusted: bool = True,
        env: Mapping[str, str] | None = None,
        policy: Policy | None = None,
    ) -> None:
        self._log = folder / f"{names[0]}.log"
        config = folder / "mcp.json"
        entries = {
            name: {
                "command": sys.executable,
                "args": [str(server), str(folder / f"{name}.log")],
                "env": dict(env or {}),
                "callsheet": {"trusted": trusted},
            }
            for name in names
        }
        config.write_text(json.dumps({"mcpServers": entries}))
        self.loaded = loaded = load(config, yes=True, policy=policy)
        retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:", embeddings=minilm)
        self.registry = ToolRegistry.from_catalog(loaded)
        self.gateway = Gateway(retriever, self.registry)
        self.server = GatewayServer(self.gateway, lambda context: Caller("desk")).server

    def client(self, mode: str = "auto", elicited: Elicited | None = None, server: Any = None, **more: Any) -> Client:
        options: dict[str, Any] = {"mode": mode, "elicitation_callback": elicited, **more}
        return Client(server or self.server, **options)

    async def call(
        self, tool: str, mode: str = "auto", elicited: Elicited | None = None, **arguments: Any
    ) -> types.CallToolResult:
        """The result of one call of a tool, by a client of its own."""
        async with self.client(mode, elicited) as client:
            return await client.call_tool("call_tool", {"tool": tool, "arguments": arguments})

    @property
    def log(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    def clear(self) -> None:
        self._log.unlink(missing_ok=True)


async def logged(local: LocalGateway, lines: list[str]) -> None:
    """Waits until the server has written this down."""
    async with asyncio.timeout(20):
        while local.log != lines:
            await asyncio.sleep(0.02)
