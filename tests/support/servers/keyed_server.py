"""An MCP server over HTTP, made with the SDK, that knows its callers by a key in a header."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp import types
from mcp.server import Server
from starlette.responses import JSONResponse, PlainTextResponse

from callsheet.orchestrator.server.listener import listening
from web_thread import web_thread

HEADER = "x-crm-key"


class KeyedServer:
    """The server; every key in ``owners`` belongs to somebody.

    Attributes:
        url: Its address.
        owners: Key -> who has it.
        heard: The keys of the requests, in their order; None for one without a key.
        opened: The keys with which sessions were opened.
        lists: Who -> names of the tools that are listed to them.
        open: Whether it lists its tools to anybody.
        echoes: Whether its tools answer with the key.
    """

    def __init__(self, origin: str) -> None:
        self.url = f"{origin}/mcp"
        self.owners: dict[str, str] = {}
        self.heard: list[str | None] = []
        self.opened: list[str | None] = []
        self.lists: dict[str, tuple[str, ...]] = {}
        self.open = True
        self.echoes = False
        server: Server[Any] = Server("crm", on_list_tools=self._list, on_call_tool=self._call)
        self._app = server.streamable_http_app()

    def who(self, key: str | None) -> str:
        return self.owners.get(key or "", "")

    async def _list(self, context: Any, request: Any) -> types.ListToolsResult:
        hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True)
        names = self.lists.get(self.who(context.request.headers.get(HEADER)), ("contacts",))
        about = {"description": "Lists my contacts.", "input_schema": {"type": "object"}, "annotations": hints}
        return types.ListToolsResult(tools=[types.Tool(name=name, **about) for name in names])

    async def _call(self, context: Any, request: Any) -> types.CallToolResult:
        key = context.request.headers.get(HEADER)
        said = f"contacts of {self.who(key)}" + (f", who has {key}" if self.echoes else "")
        return types.CallToolResult(content=[types.TextContent(type="text", text=said)])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            key = headers.get(HEADER)
            self.heard.append(key)
            if scope["method"] == "POST" and "mcp-session-id" not in headers:
                self.opened.append(key)
            if not self.who(key) and not (self.open and key is None):
                await PlainTextResponse(f"no such key: {key}", 403)(scope, receive, send)
                return
            if scope["path"] == "/api":
                await JSONResponse({"said": f"contacts of {self.who(key)}"})(scope, receive, send)
                return
        await self._app(scope, receive, send)


@contextmanager
def keyed_server() -> Iterator[KeyedServer]:
    """Serves it on a free port of this machine."""
    with listening(0) as listener:
        server = KeyedServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with web_thread(server, listener):
            yield server
