"""The gateway's own tools, as a model sees them."""

from __future__ import annotations

from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import types
from pydantic import BaseModel, ConfigDict, Field

from callsheet.orchestrator.server.gateway.catalog_gateway import MOST_READ

_READS = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class Arguments(BaseModel):
    """The arguments of a tool; its description is the docstring."""

    model_config = ConfigDict(extra="forbid")


class FindTools(Arguments):
    """Find tools, resources and prompts by what they do, with the tools that those need. Gives ids with one line."""

    query: str = Field(min_length=1, description="What is to be done, in any words; English is understood best.")
    agents: int = Field(default=5, ge=1, le=50, description="How many agents (servers) at most.")
    tools: int = Field(default=10, ge=1, le=50, description="How many tools at most.")


class ReadTools(Arguments):
    """Read the full description and input schema of tools, to call them with call_tool."""

    tools: list[str] = Field(description=f"Ids as find_tools gave them, at most {MOST_READ}.")


class CallTool(Arguments):
    """Call a tool with arguments that fit its schema. A person may be asked before it is sent."""

    tool: str = Field(description="Its id, agent/tool; a resource is read, and a prompt rendered.")
    arguments: dict[str, Any] = Field(default={}, description="Its arguments, by its input schema.")


class AskRequest(Arguments):
    """Answer a whole request of one or more steps: plan it, find the tools for each step, call them, and answer."""

    question: str = Field(min_length=1, description="The request, in plain words.")


def own_definition(name: str, arguments: type[Arguments]) -> types.Tool:
    """A tool of the gateway as it is listed."""
    return types.Tool(
        name=name,
        description=arguments.__doc__,
        input_schema=convert_to_openai_tool(arguments)["function"]["parameters"],
        annotations=_READS if arguments in (FindTools, ReadTools) else types.ToolAnnotations(read_only_hint=False),
    )
