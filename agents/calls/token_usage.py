"""Counts the calls, tokens and seconds of chat models, and computes their cost from a file of prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import add_usage
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from callsheet.graphs.errors import SettingsError

_CALLS = "model_calls"
_MILLION = 1_000_000
_FORM = '{"openai:gpt-5-mini": {"input": 0.25, "cached": 0.025, "output": 2}}'


class Usage(BaseModel):
    """The usage of some model calls; unknown fields of a report are ignored.

    Attributes:
        input_tokens: Tokens that the models read, including those that the provider read from its cache.
        seconds: Duration of the work, tool calls included.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Returns the total of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Adds two field by field."""
        sums = {name: round(value + getattr(other, name), 3) for name, value in self}
        return Usage(**sums)


def usage_of(messages: Iterable[BaseMessage], seconds: float = 0.0) -> Usage:
    """Returns the usage of these messages, with ``seconds`` as their duration; messages of users and tools use nothing.

    A message without usage data counts as a call with 0 tokens.
    """
    total = Usage(seconds=round(seconds, 3))
    for message in messages:
        outcome = message.additional_kwargs.get("outcome")
        if not isinstance(message, AIMessage) or (outcome and not outcome.get("reply")):
            continue  # not a model's reply
        reported: Mapping[str, Any] = message.usage_metadata or {}
        total += Usage(
            calls=message.response_metadata.get(_CALLS, 1),
            input_tokens=reported.get("input_tokens", 0),
            output_tokens=reported.get("output_tokens", 0),
            cached_tokens=reported.get("input_token_details", {}).get("cache_read") or 0,
        )
    return total


def with_usage_of(message: AIMessage, discarded: AIMessage) -> AIMessage:
    """Returns the message with the usage of a discarded message added to its own."""
    calls = sum(one.response_metadata.get(_CALLS, 1) for one in (message, discarded))
    return message.model_copy(
        update={
            "usage_metadata": add_usage(discarded.usage_metadata, message.usage_metadata),
            "response_metadata": {**message.response_metadata, _CALLS: calls},
        }
    )


class Price(BaseModel):
    """The price of a model per million tokens; ``cached`` is by default the same as ``input``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    output: float = Field(ge=0)

    def of(self, usage: Usage) -> float:
        """Returns the cost of this usage, in the currency of the price."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / _MILLION


def price_of(model: str, path: Path | None) -> Price | None:
    """Returns the price of a model from a file; None without a file; a ``SettingsError`` if it is not in the file."""
    if path is None:
        return None
    try:
        prices = TypeAdapter(dict[str, Price]).validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{path} is not a table of prices, as {_FORM}: {error}") from error
    if model not in prices:
        raise SettingsError(f"{path} has no price of {model!r}: it has {', '.join(sorted(prices)) or 'none'}")
    return prices[model]
