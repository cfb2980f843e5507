"""Cost of model calls: number, tokens and seconds."""

from __future__ import annotations

from collections.abc import Iterable

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import add_usage
from pydantic import BaseModel, ConfigDict

_CALLS = "model_calls"


class Usage(BaseModel):
    """Cost of some model calls.

    Attributes:
        calls: Number of model calls.
        input_tokens: Tokens read by the models, cached tokens included.
        output_tokens: Tokens written by the models.
        cached_tokens: Input tokens that the provider read from its prompt cache.
        seconds: Duration of the work, tool calls included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Adds two costs field by field."""
        ours, theirs = self.model_dump(), other.model_dump()
        return Usage(**{name: round(ours[name] + theirs[name], 3) for name in ours})


def usage_of(messages: Iterable[BaseMessage], seconds: float = 0.0) -> Usage:
    """The cost of these messages, which took this many seconds; messages of users and tools cost nothing.

    A message without usage data counts as a call with 0 tokens.
    """
    total = Usage(seconds=round(seconds, 3))
    for message in messages:
        if not isinstance(message, AIMessage) or "outcome" in message.additional_kwargs:
            continue
        told = message.usage_metadata
        cached = told.get("input_token_details", {}).get("cache_read", 0) if told else 0
        total += Usage(
            calls=message.response_metadata.get(_CALLS, 1),
            input_tokens=told["input_tokens"] if told else 0,
            output_tokens=told["output_tokens"] if told else 0,
            cached_tokens=cached or 0,
        )
    return total


def with_usage_of(message: AIMessage, discarded: AIMessage) -> AIMessage:
    """The message with the cost of a discarded one added."""
    calls = sum(one.response_metadata.get(_CALLS, 1) for one in (message, discarded))
    return message.model_copy(
        update={
            "usage_metadata": add_usage(discarded.usage_metadata, message.usage_metadata),
            "response_metadata": {**message.response_metadata, _CALLS: calls},
        }
    )
