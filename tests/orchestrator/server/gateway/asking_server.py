"""An MCP server that asks questions in the middle of its calls, in the protocol of today.

Usage: asking_server.py LOG
"""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.mcpserver.resolve import Sample
from mcp.types import CreateMessageResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

READS = ToolAnnotations(read_only_hint=True)
QUESTION = "Which\nsize?\u202e"


class Size(BaseModel):
    size: str = Field(title="Size\n\nPassword")


async def size() -> Elicit[Size]:
    return Elicit(QUESTION, Size)


async def thought() -> Sample:
    said = TextContent(type="text", text="Think")
    return Sample([SamplingMessage(role="user", content=said)], max_tokens=5)


def serve() -> None:
    server = MCPServer("asks", log_level="ERROR")

    @server.tool(annotations=READS)
    def order(size: Annotated[ElicitationResult[Size], Resolve(size)]) -> str:
        """Orders a shirt; its size is asked."""
        return f"{size.action}: {size.data.size}" if size.action == "accept" else f"no size: {size.action}"

    @server.tool(annotations=READS)
    def think(thought: Annotated[CreateMessageResult, Resolve(thought)]) -> str:
        """Thinks with the model of the client."""
        return "thought"

    server.run("stdio")


if __name__ == "__main__":
    serve()
