"""Tools that were added in the course of a conversation, in the form that a provider has for that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from callsheet.agents.registry.binding import NEED_TOOL, BoundTool

_BETA = "advanced-tool-use-2025-11-20"
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?")
_SINCE = (4, 5)
Function = dict[str, Any]
Additions = Callable[[Sequence[Function]], list[str | Function]]


def deferred(
    request: ModelRequest[Any], held: Mapping[str, BoundTool], placed: Mapping[str, Sequence[str]] | None = None
) -> ModelRequest[Any]:
    """The request with added tools at the place in the conversation where they were found.

    Providers cache a prompt from its beginning, where the tools stand, so a tool that is added there costs the whole
    cached prefix. OpenAI's Responses API (``additional_tools``) and newer models of Anthropic (``tool_addition``) take
    definitions between the messages. Anthropic's models since Claude 4.5 leave tools with ``defer_loading`` out of the
    prompt, and put a definition where a result refers to it: Callsheet's search is a custom search of that kind. Other
    models get the request as it is.

    Args:
        request: A request whose tools include all added ones.
        held: All tools from the catalog, by the name that the model sees.
        placed: Ids of further tools by the id of the message after which they were added; for models that take
            definitions between the messages.
    """
    names = {tool.id: name for name, tool in held.items()}
    added_by = _ADDITIONS.get(request.model._llm_type)
    if added_by and (request.model.profile or {}).get("mid_conversation_tools"):
        found_in = [_found(message, names, placed or {}) for message in request.messages]
        return _inserted(request, held, found_in, added_by)
    found = {id(message): _found(message, names, {}) for message in request.messages}
    added = {name for names in found.values() for name in names}
    if not added or not _searches(request.model):
        return request
    tools = [_deferred(tool) if isinstance(tool, BoundTool) and tool.name in added else tool for tool in request.tools]
    messages = [_referring(message, found[id(message)]) for message in request.messages]
    betas = [*request.model_settings.get("betas", ()), _BETA]
    settings = {**request.model_settings, "betas": list(dict.fromkeys(betas))}
    return request.override(tools=tools, messages=messages, model_settings=settings)


def _searches(model: BaseChatModel) -> bool:
    """Whether a model is one of Anthropic's API that loads deferred tools: since Claude 4.5."""
    if model._llm_type != "anthropic-chat":
        return False
    match = _CLAUDE.match(str(getattr(model, "model", "")))
    return match is not None and (int(match[1]), int(match[2] or 0)) >= _SINCE


def _found(message: AnyMessage, names: Mapping[str, str], placed: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of the tools that were added by an answer of ``need_tool`` or after it, as far as still held."""
    ids = list(placed.get(message.id or "", ()))
    if isinstance(message, ToolMessage) and message.name == NEED_TOOL and isinstance(message.artifact, dict):
        ids += message.artifact.get("added", ())
    return [names[tool_id] for tool_id in ids if tool_id in names]


def _inserted(
    request: ModelRequest[Any],
    held: Mapping[str, BoundTool],
    found: Sequence[Sequence[str]],
    added_by: Additions,
) -> ModelRequest[Any]:
    """The request with definitions between its messages: each tool once, before the model's next words or last."""

    def messages() -> Iterator[AnyMessage]:
        waiting: dict[str, None] = {}
        given: set[str] = set()
        for place, message in enumerate(request.messages):
            yield message
            waiting |= dict.fromkeys(name for name in found[place] if name not in given)
            if waiting and isinstance(next(iter(request.messages[place + 1 :]), _NEXT), AIMessage):
                definitions = (convert_to_openai_tool(held[name])["function"] for name in waiting)
                yield SystemMessage(added_by(list(definitions)))
                given |= waiting.keys()
                waiting = {}

    added = {name for names in found for name in names}
    tools = [tool for tool in request.tools if not (isinstance(tool, BoundTool) and tool.name in added)]
    return request.override(tools=tools, messages=list(messages()))


def _additional_tools(functions: Sequence[Function]) -> list[str | Function]:
    """An input item of OpenAI's Responses API."""
    tools = [{"type": "function", **function} for function in functions]
    return [{"type": "additional_tools", "role": "developer", "tools": tools}]


def _tool_additions(functions: Sequence[Function]) -> list[str | Function]:
    """Content blocks of Anthropic's Messages API."""
    definitions = ({("input_schema" if key == "parameters" else key): function[key] for key in function}
                   for function in functions)  # fmt: skip
    return [
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}
        for definition in definitions
    ]


_ADDITIONS: Mapping[str, Additions] = {"openai-chat": _additional_tools, "anthropic-chat": _tool_additions}
"""The form of added tools, for models that take them between the messages by LangChain's profile of them."""
_NEXT = AIMessage("")


def _referring(message: AnyMessage, found: list[str]) -> AnyMessage:
    if not found:
        return message
    references = [{"type": "tool_reference", "tool_name": name} for name in found]
    return message.model_copy(update={"content": references})


def _deferred(tool: BoundTool) -> BoundTool:
    return tool.model_copy(update={"extras": {**(tool.extras or {}), "defer_loading": True}})
