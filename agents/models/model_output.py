"""What a model said, as the state keeps it: calls written as text are calls, and secret arguments are put away."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall

from callsheet.agents.models.text_tool_calls import written_calls
from callsheet.agents.safety.secrets import RunSecrets, has_secrets
from callsheet.agents.tools.binding import BoundTool
from callsheet.agents.tools.tool_names import NEED_TOOL
from callsheet.graphs.text.secret_patterns import MASK

_UNSTREAMED = "nostream"  # LangGraph's word for a model whose tokens are not streamed
_TEXTS = ("content", "additional_kwargs", "response_metadata")


def unstreamed(model: BaseChatModel, tools: Mapping[str, BoundTool]) -> BaseChatModel:
    """The model; its tokens are not streamed if a tool takes secrets, which would be seen in them."""
    if not any(has_secrets(tool.args_schema) for tool in tools.values()):
        return model
    return model.model_copy(update={"tags": [*(model.tags or ()), _UNSTREAMED]})


def normalize(
    response: ModelResponse[Any],
    tools: Mapping[str, BoundTool],
    secrets: RunSecrets | None = None,
    conversation: Sequence[BaseMessage] = (),
) -> ModelResponse[Any]:
    """The response as the state keeps it.

    A call that the model wrote as text is a call, unless it is a quotation: a tool result, or anything else that the
    model was shown, holds the same call.

    Args:
        response: What the model said.
        tools: What it may call, by the names that it sees.
        secrets: Where secret arguments are put away; a placeholder takes their place. They stay where None.
        conversation: What the model was shown.
    """
    said = [_with_calls(message, (*tools, NEED_TOOL), conversation) for message in response.result]
    kept = said if secrets is None else [_without_secrets(message, tools, secrets) for message in said]
    return ModelResponse(result=kept, structured_response=response.structured_response)


def _with_calls(message: BaseMessage, names: Collection[str], conversation: Sequence[BaseMessage]) -> BaseMessage:
    """The message with the tool calls that a small model wrote as JSON text, where they name a given tool."""
    if not isinstance(message, AIMessage) or message.tool_calls:
        return message
    said = message.id or uuid.uuid4().hex  # a message may have no id, and no two calls of a conversation share one
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
    masked: ToolCall = {**call, "args": secrets.masked(_schema(call["name"], tools), call["args"])}
    return masked


def _schema(name: str | None, tools: Mapping[str, BoundTool]) -> dict[str, Any]:
    tool = tools.get(name or "")
    return tool.args_schema if tool is not None and isinstance(tool.args_schema, dict) else {}
