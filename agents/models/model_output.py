"""Normalises a model's output for the state: calls have ids, secret arguments are replaced; finds calls in text."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langgraph.constants import TAG_NOSTREAM

from callsheet.agents.registry.binding import BoundTool
from callsheet.agents.safety.secrets import RunSecrets, has_secrets
from callsheet.graphs.text.secret_patterns import MASK

_TEXTS = ("content", "additional_kwargs", "response_metadata")


def unstreamed(model: BaseChatModel, tools: Mapping[str, BoundTool]) -> BaseChatModel:
    """The model, without token streaming if a tool takes secrets, which would show in the stream."""
    if not any(has_secrets(tool.args_schema) for tool in tools.values()):
        return model
    return model.model_copy(update={"tags": [*(model.tags or ()), TAG_NOSTREAM]})


def normalize(
    response: ModelResponse[Any], tools: Mapping[str, BoundTool], secrets: RunSecrets | None = None
) -> ModelResponse[Any]:
    """The response in the form for the state.

    A call without an id, which LangChain allows, gets one: its result must name it.

    Args:
        response: The model's response.
        tools: The tools, by the names that the model sees.
        secrets: Replaces secret arguments by placeholders; they stay unchanged if None.
    """
    said = list(map(with_ids, response.result))
    kept = said if secrets is None else [_without_secrets(message, tools, secrets) for message in said]
    return ModelResponse(result=kept, structured_response=response.structured_response)


def with_ids(message: BaseMessage) -> BaseMessage:
    """The message, with an id for each of its calls."""
    if not isinstance(message, AIMessage) or all(call["id"] for call in message.tool_calls):
        return message
    calls = [call if call["id"] else {**call, "id": f"call_{uuid.uuid4().hex}"} for call in message.tool_calls]
    return message.model_copy(update={"tool_calls": calls})


def with_written_calls(
    message: BaseMessage, names: Collection[str], conversation: Sequence[BaseMessage]
) -> BaseMessage:
    """The message with the calls of these tools that a weak model wrote as JSON text.

    A quotation is no call: the same call in a tool result or in another message to the model.

    Args:
        message: The model's message.
        names: The names of the tools.
        conversation: The messages to the model.
    """
    if not isinstance(message, AIMessage) or message.tool_calls:
        return message
    said = message.id or uuid.uuid4().hex  # a message may have no id, and the ids of calls must be unique
    written = written_calls(message.text, names)
    if written:
        shown = [other.text for other in conversation if not isinstance(other, AIMessage)]
        quoted = [call for text in shown for call in written_calls(text, names)]
        written = [call for call in written if call not in quoted]
    calls = [{**call, "id": f"written_{said}_{n}", "type": "tool_call"} for n, call in enumerate(written, 1)]
    return message.model_copy(update={"content": "", "tool_calls": calls}) if calls else message


def _without_secrets(message: BaseMessage, tools: Mapping[str, BoundTool], secrets: RunSecrets) -> BaseMessage:
    if not isinstance(message, AIMessage):
        return message
    calls = [_masked(call, tools, secrets) for call in message.tool_calls]
    broken = [{**call, "args": MASK} if has_secrets(_schema(call["name"], tools)) else call
              for call in message.invalid_tool_calls]  # fmt: skip
    texts = {name: secrets.hidden(getattr(message, name)) for name in _TEXTS}
    return message.model_copy(update={**texts, "tool_calls": calls, "invalid_tool_calls": broken})


def _masked(call: ToolCall, tools: Mapping[str, BoundTool], secrets: RunSecrets) -> ToolCall:
    known = call["name"] in tools  # others are the worker's own, as ``finish``, which have no schema of secrets
    args = secrets.masked(_schema(call["name"], tools), call["args"]) if known else secrets.hidden(call["args"])
    masked: ToolCall = {**call, "args": args}
    return masked


def _schema(name: str | None, tools: Mapping[str, BoundTool]) -> dict[str, Any]:
    tool = tools.get(name or "")
    return tool.args_schema if tool is not None and isinstance(tool.args_schema, dict) else {}


_MOST_TRIED = 64
"""Maximum number of positions tried as JSON, and of list entries, so that no text takes long."""
_ARGS = ("arguments", "parameters", "args")
_READ = json.JSONDecoder()


def written_object(text: str) -> dict[str, Any] | None:
    """The JSON object from the first brace of a text to its last; None if that is not one complete object."""
    try:
        written = json.loads(text[text.find("{") : text.rfind("}") + 1]) if "{" in text else None
    except (ValueError, RecursionError):
        return None
    return written if isinstance(written, dict) else None


def written_calls(text: str, names: Collection[str]) -> list[dict[str, Any]]:
    """The calls of these tools in a text, in order, without repetitions; other JSON is ignored.

    Small models write ``{"name": ..., "arguments": {...}}``: with or without other words around it, several in a row,
    in a list, with the arguments as a JSON string, or inside ``{"function": ...}``.

    Returns:
        ``name`` and ``args`` of each call.
    """
    calls: list[dict[str, Any]] = []
    for value in _values(text):
        for written in value[:_MOST_TRIED] if isinstance(value, list) else [value]:
            call = _call(written, names)
            if call and call not in calls:
                calls.append(call)
    return calls


def written_call(text: str, names: Collection[str]) -> dict[str, Any] | None:
    """The first of these calls; None without any."""
    return next(iter(written_calls(text, names)), None)


def _values(text: str) -> Iterator[Any]:
    """The outermost JSON objects and lists in a text, from left to right."""
    at = 0
    for _ in range(_MOST_TRIED):
        starts = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
        if not starts:
            return
        try:
            value, at = _READ.raw_decode(text, min(starts))
            yield value
        except (ValueError, RecursionError):
            at = min(starts) + 1


def _call(written: Any, names: Collection[str]) -> dict[str, Any] | None:
    if isinstance(written, Mapping) and isinstance(written.get("function"), Mapping):
        written = written["function"]
    if not isinstance(written, Mapping):
        return None
    name, args = written.get("name"), next((written[key] for key in _ARGS if key in written), None)
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            return None
    return {"name": name, "args": args} if isinstance(name, str) and name in names and isinstance(args, dict) else None
