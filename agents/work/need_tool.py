"""A worker asks for a missing tool; what is found is added after its other tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field

from callsheet.agents.registry.binding import NEED_TOOL, BoundTool
from callsheet.graphs.text.sanitizing import shown

_WORDS = 80
"""Characters of a description in the answer; the model sees all of it with the tool."""


class _Need(BaseModel):
    """Ask for a tool that you lack. What fits is added to your tools."""

    model_config = ConfigDict(title=NEED_TOOL)

    what: str = Field(description="What the tool must do, in one sentence, without its inputs.")


DEFINITION: Mapping[str, Any] = convert_to_openai_tool(_Need)


@dataclass(frozen=True, slots=True)
class ToolRequests:
    """Answers a worker's requests for tools.

    Attributes:
        find: From the need, and the ids of the worker's tools, to the ids of further tools.
        bind: From ids, and the names in use, to tools by the names that the model sees.
        about: From the id of an agent to what it is for, in a few words.
    """

    find: Callable[[str, Collection[str]], Awaitable[Sequence[str]]]
    bind: Callable[[Sequence[str], Collection[str]], Mapping[str, BoundTool]]
    about: Callable[[str], str] = lambda agent: ""


def equipped(
    tools: Mapping[str, BoundTool], requests: ToolRequests | None, messages: Sequence[AnyMessage]
) -> dict[str, BoundTool]:
    """The tools of a step with those that were added, in the order of their addition.

    The conversation alone determines what was added, so a resumed step has the same tools under the same names.
    """
    held = dict(tools)
    if requests:
        for message in filter(_answers_a_request, messages):
            known = {tool.id for tool in held.values()}
            held.update(requests.bind([i for i in message.artifact["added"] if i not in known], list(held)))
    return held


async def answer_request(call: ToolCall, tools: Mapping[str, BoundTool], requests: ToolRequests) -> ToolMessage:
    """The answer to a worker's request for a tool, made by a call of ``need_tool``."""
    what = call["args"].get("what")
    if not isinstance(what, str) or not what.strip():
        return _said(call, "say what the tool must do, as the text 'what'", error=True)
    ids = await requests.find(what, [tool.id for tool in tools.values()])
    added = requests.bind(ids, list(tools))
    if not added:
        return _said(call, "no other tool in the catalog does that", ids=())
    agents = {tool.agent: f"{tool.agent}: {about}" for tool in added.values() if (about := requests.about(tool.agent))}
    lines = (f"{name} (agent {tool.agent}): {shown(tool.description, most=_WORDS)}" for name, tool in added.items())
    told = "\n".join(["You can now call:", *lines, *(["Their agents:", *agents.values()] if agents else [])])
    return _said(call, told, ids=[tool.id for tool in added.values()])


def _said(call: ToolCall, text: str, *, ids: Sequence[str] | None = None, error: bool = False) -> ToolMessage:
    return ToolMessage(
        text,
        tool_call_id=call["id"] or "",
        name=NEED_TOOL,
        status="error" if error else "success",
        artifact=None if ids is None else {"added": list(ids)},
    )


def _answers_a_request(message: AnyMessage) -> TypeGuard[ToolMessage]:
    return isinstance(message, ToolMessage) and message.name == NEED_TOOL and message.status != "error"
