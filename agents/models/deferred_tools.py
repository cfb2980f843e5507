"""Tools that were added in the course of a conversation, in the form of a provider's own tool search."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, ToolMessage

from callsheet.agents.tools.binding import BoundTool
from callsheet.agents.tools.tool_names import NEED_TOOL

_BETA = "advanced-tool-use-2025-11-20"
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?")
_SINCE = (4, 5)


def deferred(request: ModelRequest[Any], held: Mapping[str, BoundTool]) -> ModelRequest[Any]:
    """The request with added tools at the place in the conversation where they were found.

    Providers cache a prompt from its beginning, where the tools stand, so a tool that is added there costs the whole
    cached prefix. Anthropic leaves tools with ``defer_loading`` out of the prompt, and puts a definition where a result
    refers to it: Callsheet's search is a custom search of that kind. Other providers get the request as it is.

    Args:
        request: A request whose tools include those that ``need_tool`` has added.
        held: All tools from the catalog, by the name that the model sees.
    """
    names = {tool.id: name for name, tool in held.items()}
    found = {id(message): _found(message, names) for message in request.messages}
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


def _found(message: AnyMessage, names: Mapping[str, str]) -> list[str]:
    """The names of the tools that an answer of ``need_tool`` has added, as far as they are still held."""
    if not isinstance(message, ToolMessage) or message.name != NEED_TOOL or not isinstance(message.artifact, dict):
        return []
    return [names[tool_id] for tool_id in message.artifact.get("added", ()) if tool_id in names]


def _referring(message: AnyMessage, found: list[str]) -> AnyMessage:
    if not found:
        return message
    references = [{"type": "tool_reference", "tool_name": name} for name in found]
    return message.model_copy(update={"content": references})


def _deferred(tool: BoundTool) -> BoundTool:
    return tool.model_copy(update={"extras": {**(tool.extras or {}), "defer_loading": True}})
