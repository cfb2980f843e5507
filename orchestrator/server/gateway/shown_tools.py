"""The tools that a client sees: the gateway's own and the best of its last search; and their results."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import types
from pydantic import BaseModel, ConfigDict, Field

from callsheet.agents.registry.binding import names_of, object_schema
from callsheet.graphs import Catalog, Tool, shown, shown_schema
from callsheet.orchestrator.server.gateway.catalog_gateway import MOST_READ

_READS = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class Arguments(BaseModel):
    """The arguments of a tool; its description is the docstring."""

    model_config = ConfigDict(extra="forbid")


class FindTools(Arguments):
    """Find tools, skills, resources and prompts by what they do, with the tools that those need: ids with one line."""

    query: str = Field(min_length=1, description="What is to be done, in any words; English is understood best.")
    agents: int = Field(default=5, ge=1, le=50, description="How many agents (servers) at most.")
    tools: int = Field(default=10, ge=1, le=50, description="How many tools at most.")


class ReadTools(Arguments):
    """Read the full description and input schema of tools, to call them with call_tool; and the text of skills."""

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


_MOST_SESSIONS, _LONGEST_TITLE = 1_000, 200


@dataclass(slots=True)
class _Session:
    used: OrderedDict[str, None] = field(default_factory=OrderedDict)
    names: dict[str, str] = field(default_factory=dict)


class DirectTools:
    """The tools that each session found last, at most ``most``.

    A change of the list costs a client its provider's prompt cache, since tools stand at the beginning of a prompt. So
    the list changes only when a search finds a tool that is not in it; new tools then replace those that were found
    or called longest ago. A name never stands for two tools in one session.
    """

    def __init__(self, most: int, own: Sequence[str]) -> None:
        self.most, self._own = most, frozenset(own)
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def show(self, session: str, found: Sequence[str]) -> bool:
        """Puts tools, best first, into a session's list; returns whether the list has changed."""
        if not self.most:
            return False
        held = self._sessions.setdefault(session, _Session()).used
        self._sessions.move_to_end(session)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        before = set(held)
        for tool_id in reversed(found[: self.most]):
            held[tool_id] = None
            held.move_to_end(tool_id)
        while len(held) > self.most:
            held.popitem(last=False)
        return set(held) != before

    def named(self, session: str, catalog: Catalog) -> dict[str, Tool]:
        """A session's tools by the name that a model sees, by id; those that have gone are left out."""
        if (held := self._sessions.get(session)) is None:
            return {}
        tools = [catalog.tools[tool_id] for tool_id in sorted(held.used) if tool_id in catalog.tools]
        for tool in tools:
            if tool.id not in held.names:
                taken = {*held.names.values(), *self._own}
                held.names[tool.id] = next(name for name in names_of(tool.agent, tool.name) if name not in taken)
        return {held.names[tool.id]: tool for tool in tools}


def definition(name: str, tool: Tool) -> types.Tool:
    """A tool in valid form, whatever its server says: one that is not would cost the client the whole list."""
    hints = {name: value for name, value in tool.annotations.items() if isinstance(value, bool)}
    return types.Tool(
        name=name,
        title=shown(tool.title, most=_LONGEST_TITLE) or None,
        description=f"{shown(tool.description)} ({tool.id})",
        input_schema=object_schema(shown_schema(tool.input_schema)),
        annotations=types.ToolAnnotations.model_validate(hints),
    )


_LARGEST = 10_000_000  # bytes of one image or sound


def result_of(answer: ToolMessage, *, text_only: bool = False) -> types.CallToolResult:
    """The answer of a ``BoundTool``: text, images and sounds, the structured result, and how a failed call ended.

    Reads files: images and sounds were stored as files when the answer came.

    Args:
        answer: The answer.
        text_only: Leave out the structured result, which says the same again for a resource.
    """
    artifact: dict[str, Any] = answer.artifact if isinstance(answer.artifact, dict) else {}
    content: list[Any] = [types.TextContent(type="text", text=answer.text)]
    content += filter(None, map(_medium, artifact.get("media") or ()))
    failed = answer.status == "error"
    ended = {f"callsheet/{name}": artifact[name] for name in ("kind", "effect") if failed and artifact.get(name)}
    structured = artifact.get("structured")
    return types.CallToolResult(
        content=content,
        structured_content=structured if isinstance(structured, dict) and not text_only else None,
        is_error=failed,
        _meta=ended or None,
    )


def error_result(message: str) -> types.CallToolResult:
    """An error that a model can act on."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def text_result(text: str) -> types.CallToolResult:
    """A plain text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _medium(kept: dict[str, Any]) -> types.ImageContent | types.AudioContent | None:
    kind = str(kept["media"]).partition("/")[0]
    if kind not in ("image", "audio") or kept["size"] > _LARGEST:
        return None  # the text says where it is
    data = base64.b64encode(Path(kept["path"]).read_bytes()).decode()
    if kind == "image":
        return types.ImageContent(type="image", data=data, mime_type=kept["media"])
    return types.AudioContent(type="audio", data=data, mime_type=kept["media"])
