"""A domain with MCP servers, their Server Cards and a registry, on a free port of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from mcp import types
from mcp.server import Server
from starlette.responses import Response

from callsheet.orchestrator.server.listener import listening
from web_thread import web_thread

SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
CARD_TYPE = "application/mcp-server-card+json"
AI_CATALOG = "/.well-known/ai-catalog.json"
OLD_CARD = "/.well-known/mcp/server-card.json"


class Domain:
    """The domain.

    Attributes:
        origin: Its address; its MCP server, which tells the weather, is at ``/mcp``.
        pages: Path -> what is there: a JSON value, bytes, or a response.
        servers: Name -> the ``server.json`` that the registry has.
        asked: Method and path of the requests, in their order.
        accepted: Path -> the ``Accept`` header of its last request.
        hanging: Paths that never answer.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.pages: dict[str, Any] = {}
        self.servers: dict[str, dict[str, Any]] = {}
        self.status: dict[str, str] = {}
        self.asked: list[str] = []
        self.accepted: dict[str, str] = {}
        self.hanging: set[str] = set()
        server: Server[Any] = Server("weather", on_list_tools=self._list, on_call_tool=self._call)
        self._app = server.streamable_http_app()

    @property
    def url(self) -> str:
        """The address of its MCP server."""
        return f"{self.origin}/mcp"

    def card(self, name: str = "com.example/weather", **more: Any) -> dict[str, Any]:
        """A Server Card of its MCP server."""
        remotes = [{"type": "streamable-http", "url": self.url}]
        about = {"version": "1.0.0", "description": "Tells the weather."}
        return {"$schema": SCHEMA, "name": name, **about, "remotes": remotes, **more}

    def publish(self, *cards: Any) -> None:
        """Publishes an AI Catalog with cards: those that are texts by their addresses, the others inline."""
        entries = []
        for number, card in enumerate(cards):
            held = {"url": card} if isinstance(card, str) else {"data": card}
            entries.append({"identifier": f"urn:air:example.com:mcp:{number}", "type": CARD_TYPE, **held})
        self.pages[AI_CATALOG] = {"specVersion": "1.0", "entries": entries}

    async def _list(self, context: Any, request: Any) -> types.ListToolsResult:
        hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True)
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        about: Any = {"description": "The weather of a city.", "input_schema": schema, "annotations": hints}
        return types.ListToolsResult(tools=[types.Tool(name="forecast", **about)])

    async def _call(self, context: Any, request: Any) -> types.CallToolResult:
        text = f"sunny in {(request.arguments or {}).get('city')}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] == "/mcp":
            await self._app(scope, receive, send)
            return
        path = scope["raw_path"].decode()
        self.asked.append(path + (f"?{scope['query_string'].decode()}" if scope["query_string"] else ""))
        self.accepted[path] = dict(scope["headers"]).get(b"accept", b"").decode()
        if path in self.hanging:
            await asyncio.sleep(600)
        await self._page(path, scope["query_string"].decode())(scope, receive, send)

    def _page(self, path: str, query: str) -> Response:
        if path in self.pages:
            page = self.pages[path]
            if isinstance(page, Response):
                return page
            return Response(page if isinstance(page, bytes) else json.dumps(page), media_type="application/json")
        if path.startswith("/v0.1/servers"):
            return self._registry(path.removeprefix("/v0.1/servers"), query)
        return Response("not found", 404)

    def _registry(self, rest: str, query: str) -> Response:
        if not rest:
            words = dict(part.split("=") for part in query.split("&"))
            found = [self._answer(name) for name in self.servers if unquote(words["search"]) in name]
            return Response(json.dumps({"servers": found, "metadata": {"count": len(found)}}))
        name = unquote(rest.split("/")[1])
        if name not in self.servers:
            return Response(json.dumps({"error": "Server not found"}), 404)
        return Response(json.dumps(self._answer(name)))

    def _answer(self, name: str) -> dict[str, Any]:
        about = {"status": self.status.get(name, "active"), "isLatest": True}
        return {"server": self.servers[name], "_meta": {"io.modelcontextprotocol.registry/official": about}}


@contextmanager
def domain() -> Iterator[Domain]:
    """Serves a domain that has only its MCP server so far."""
    with listening(0) as listener:
        served = Domain(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with web_thread(served, listener):
            yield served
