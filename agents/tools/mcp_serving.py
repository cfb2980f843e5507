"""Serves LangChain tools as an MCP server, for any MCP client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

if TYPE_CHECKING:
    from mcp.server import Server


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

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def error_lines(error: ValidationError) -> str:
    """The errors of a validation, each with its place."""
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors())
