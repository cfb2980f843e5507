"""Serves LangChain tools as an MCP server, for any MCP client."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from callsheet.graphs.text.arguments import error_lines

if TYPE_CHECKING:
    from mcp.server import Server

_LONGEST_LINE = 2**31 - 1


def mcp_server(name: str, tools: Sequence[BaseTool], *, instructions: str = "") -> Server[Any]:
    """An MCP server with these tools.

    A ``ToolException``, and arguments that do not fit, become results marked as errors, with a text that a model can
    act on. An unknown tool is a protocol error.

    Returns:
        A server that has not started; ``serve_stdio`` runs it.
    """
    import mcp_types as types
    from mcp import MCPError
    from mcp.server import Server

    by_name = {tool.name: tool for tool in tools}
    listed = [types.Tool.model_validate(entry) for entry in listing(tools)]

    async def list_tools(context: Any, request: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(context: Any, request: types.CallToolRequestParams) -> types.CallToolResult:
        if request.name not in by_name:
            raise MCPError(types.INVALID_PARAMS, f"no tool {request.name!r}; there are {', '.join(by_name)}")
        try:
            said, wrong = str(await by_name[request.name].ainvoke(request.arguments or {})), False
        except ValidationError as error:
            said, wrong = f"the arguments do not fit: {error_lines(error)}", True
        except ToolException as error:
            said, wrong = str(error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=said)], is_error=wrong)

    return Server(name, instructions=instructions or None, on_list_tools=list_tools, on_call_tool=call_tool)


def listing(tools: Sequence[BaseTool]) -> list[dict[str, Any]]:
    """The tools as entries of MCP's ``tools/list``; hints come from ``metadata["annotations"]``."""
    entries = []
    for tool in tools:
        function = convert_to_openai_tool(tool)["function"]
        entries.append(
            {
                "name": function["name"],
                "description": function["description"],
                "inputSchema": function["parameters"],
                "annotations": (tool.metadata or {}).get("annotations", {}),
            }
        )
    return entries


async def serve_stdio(server: Server[Any]) -> None:
    """Serves one client over standard input and output until it disconnects."""
    from mcp.server.stdio import stdio_server

    async with _pipes() as pipes, stdio_server(*pipes) as (read, write):
        await server.run(read, write, server.create_initialization_options())


class _Pipes:
    """Standard input and output as the library reads and writes them, but on the event loop.

    The library's own take three threads in turn for each request and its answer.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._reader:
            yield line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        self._writer.write(text.encode())

    async def flush(self) -> None:
        await self._writer.drain()


@asynccontextmanager
async def _pipes() -> AsyncIterator[tuple[Any, ...]]:
    """Input and output for ``stdio_server``; nothing where they are no pipes, so that the library opens them.

    From now on the process itself reads nothing from them, and what it prints goes to standard error.
    """
    if not _are_pipes():
        yield ()
        return
    sys.stdout.flush()
    source, target, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=_LONGEST_LINE)
    incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0))
    unread = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    outgoing, _ = await loop.connect_write_pipe(lambda: unread, os.fdopen(target, "wb", 0))
    outgoing.set_write_buffer_limits(0)  # whoever flushes waits until all is written
    pipes = _Pipes(reader, asyncio.StreamWriter(outgoing, unread, None, loop))
    try:
        yield pipes, pipes
    finally:
        incoming.close()
        outgoing.close()


def _are_pipes() -> bool:
    """Whether both are pipes or sockets; they become non-blocking, so standard error must not be one of them."""
    try:
        if sys.platform == "win32" or (sys.stdin.fileno(), sys.stdout.fileno()) != (0, 1):
            return False
        modes = [os.fstat(number).st_mode for number in (0, 1)]
        shared = any(os.path.sameopenfile(2, number) for number in (0, 1))
    except (AttributeError, OSError, ValueError):  # replaced or closed
        return False
    return not shared and all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes)
