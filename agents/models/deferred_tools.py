"""Tools that were added in the course of a conversation, in the form that a provider has for that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from callsheet.agents.tools.binding import BoundTool
from callsheet.agents.tools.tool_names import NEED_TOOL

_BETA = "advanced-tool-use-2025-11-20"
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?")
_SINCE = (4, 5)


def deferred(
    request: ModelRequest[Any], held: Mapping[str, BoundTool], placed: Mapping[str, Sequence[str]] | None = None
) -> ModelRequest[Any]:
    """The request with added tools at the place in the conversation where they were found.

    Providers cache a prompt from its beginning, where the tools stand, so a tool that is added there costs the whole
    cached prefix. OpenAI's Responses API takes definitions between the messages (``additional_tools``). Anthropic
    leaves tools with ``defer_loading`` out of the prompt, and puts a definition where a result refers to it:
    Callsheet's search is a custom search of that kind. Other providers get the request as it is.

    Args:
        request: A request whose tools include all added ones.
        held: All tools from the catalog, by the name that the model sees.
        placed: Ids of further tools by the id of the message after which they were added. OpenAI only: Anthropic knows
            no place but a result.
    """
    names = {tool.id: name for name, tool in held.items()}
    if _takes_additions(request.model):
        return _inserted(request, held, [_found(message, names, placed or {}) for message in request.messages])
    found = {id(message): _found(message, names, {}) for message in request.messages}
    added = {name for names in found.values() for name in names}
    if not added or not _searches(request.model):
        return request
    tools = [_deferred(tool) if isinstance(tool, BoundTool) and tool.name in added else tool for tool in request.tools]
    messages = [_referring(message, found[id(message)]) for message in request.messages]
    betas = [*request.model_settings.get("betas", ()), _BETA]
    settings = {**request.model_settings, "betas": list(dict.fromkeys(betas))}
    return request.override(tools=tools, messages=messages, model_settings=settings)


def _takes_additions(model: BaseChatModel) -> bool:
    """Whether LangChain's profile of a model of OpenAI says that it takes tools between messages."""
    return model._llm_type == "openai-chat" and bool((model.profile or {}).get("mid_conversation_tools"))


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
    request: ModelRequest[Any], held: Mapping[str, BoundTool], found: Sequence[Sequence[str]]
) -> ModelRequest[Any]:
    """The request with definitions between its messages: each tool once, and no answer is parted from its call."""

    def messages() -> Iterator[AnyMessage]:
        waiting: dict[str, None] = {}
        given: set[str] = set()
        for place, message in enumerate(request.messages):
            yield message
            waiting |= dict.fromkeys(name for name in found[place] if name not in given)
            if waiting and not isinstance(next(iter(request.messages[place + 1 :]), None), ToolMessage):
                yield _definitions([held[name] for name in waiting])
                given |= waiting.keys()
                waiting = {}

    added = {name for names in found for name in names}
    tools = [tool for tool in request.tools if not (isinstance(tool, BoundTool) and tool.name in added)]
    return request.override(tools=tools, messages=list(messages()))


def _definitions(tools: Sequence[BoundTool]) -> SystemMessage:
    """An input item of OpenAI's Responses API: tools that are available from here on."""
    functions = [{"type": "function", **convert_to_openai_tool(tool)["function"]} for tool in tools]
    return SystemMessage([{"type": "additional_tools", "role": "developer", "tools": functions}])


def _referring(message: AnyMessage, found: list[str]) -> AnyMessage:
    if not found:
        return message
    references = [{"type": "tool_reference", "tool_name": name} for name in found]
    return message.model_copy(update={"content": references})


def _deferred(tool: BoundTool) -> BoundTool:
    return tool.model_copy(update={"extras": {**(tool.extras or {}), "defer_loading": True}})
