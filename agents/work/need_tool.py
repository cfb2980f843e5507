"""A worker that lacks a tool asks for it; what is found is added to its tools, never put among them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from callsheet.agents.tools.binding import BoundTool
from callsheet.agents.tools.tool_names import NEED_TOOL

DEFINITION: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": NEED_TOOL,
        "description": "Ask for a tool that you lack for this step. What fits is added to your tools.",
        "parameters": {
            "type": "object",
            "properties": {
                "what": {"type": "string", "description": "What the tool must do, in one sentence, without its inputs."}
            },
            "required": ["what"],
        },
    },
}


@dataclass(frozen=True, slots=True)
class ToolRequests:
    """How a worker's requests for tools are answered.

    Attributes:
        find: From what is needed, and the ids that the worker has, to the ids of tools that it may have too.
        bind: From ids, and the names that are taken, to tools by the names that the model sees.
        most: How many requests a step may make.
    """

    find: Callable[[str, Collection[str]], Awaitable[Sequence[str]]]
    bind: Callable[[Sequence[str], Collection[str]], Mapping[str, BoundTool]]
    most: int = 2


def equipped(
    tools: Mapping[str, BoundTool], requests: ToolRequests | None, messages: Sequence[AnyMessage]
) -> dict[str, BoundTool]:
    """The tools of a step with those that were added to them, in the order in which they came.

    The conversation alone tells what was added, so a step that is resumed has the same tools under the same names.
    """
    held = dict(tools)
    if requests:
        for message in filter(_answers_a_request, messages):
            known = {tool.id for tool in held.values()}
            held.update(requests.bind([i for i in message.artifact["added"] if i not in known], list(held)))
    return held


async def answer_request(
    call: ToolCall, tools: Mapping[str, BoundTool], requests: ToolRequests, messages: Sequence[AnyMessage]
) -> ToolMessage:
    """What a worker is told that asked for a tool.

    Args:
        call: Its call of ``need_tool``.
        tools: All that it has, those added before among them.
        requests: How requests are answered.
        messages: Its conversation so far.
    """
    what = call["args"].get("what")
    if not isinstance(what, str) or not what.strip():
        return _said(call, "say what the tool must do, as the text 'what'", error=True)
    if _made_before(call, messages) >= requests.most:
        return _said(call, f"no more tools can be asked for in this step (at most {requests.most} times)", error=True)
    ids = await requests.find(what, [tool.id for tool in tools.values()])
    added = requests.bind(ids, list(tools))
    if not added:
        return _said(call, "no other tool in the catalog does that", ids=())
    lines = (f"{name}: {tool.description.splitlines()[0]}" for name, tool in added.items())
    return _said(call, "You can now call:\n" + "\n".join(lines), ids=[tool.id for tool in added.values()])


def _said(call: ToolCall, text: str, *, ids: Sequence[str] | None = None, error: bool = False) -> ToolMessage:
    return ToolMessage(
        text,
        tool_call_id=call["id"] or "",
        name=NEED_TOOL,
        status="error" if error else "success",
        artifact=None if ids is None else {"added": list(ids)},
    )


def _made_before(call: ToolCall, messages: Sequence[AnyMessage]) -> int:
    """The requests answered, and those of the same turn that stand before this one."""
    turn = next((message.tool_calls for message in reversed(messages) if isinstance(message, AIMessage)), [])
    asked = [other["id"] for other in turn if other["name"] == NEED_TOOL]
    beside = asked.index(call["id"]) if call["id"] in asked else 0
    return sum(map(_answers_a_request, messages)) + beside


def _answers_a_request(message: AnyMessage) -> TypeGuard[ToolMessage]:
    return isinstance(message, ToolMessage) and message.name == NEED_TOOL and message.status != "error"
