"""Cost of model calls: number, tokens and seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import add_usage
from pydantic import BaseModel, ConfigDict, Field

from callsheet.graphs.text.sanitizing import shown

_CALLS, _MODEL, _PROVIDER = "model_calls", "model_name", "model_provider"
_MOST_MODELS, _LONGEST_NAME = 16, 120


class ModelUsage(BaseModel):
    """Tokens of some calls of one model.

    Attributes:
        calls: Number of model calls.
        input_tokens: Tokens read by the models, including cached tokens.
        output_tokens: Tokens written by the models.
        cached_tokens: Input tokens that the provider read from its prompt cache.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens


class Usage(ModelUsage):
    """Cost of some model calls.

    Attributes:
        seconds: Duration of the work, tool calls included.
        by_model: Model -> its part, by the name in its responses (``provider:name``); without calls of unnamed models.
    """

    seconds: float = 0.0
    by_model: Mapping[str, ModelUsage] = Field(default_factory=dict)

    @classmethod
    def from_report(cls, told: Mapping[str, Any]) -> Usage:
        """The cost in a report of the supervisor, which has further fields."""
        return cls(**{name: told[name] for name in cls.model_fields if name in told})

    @property
    def unnamed(self) -> ModelUsage:
        """The part of models that are not named."""
        named = [part.model_dump() for part in self.by_model.values()]
        rest = {name: getattr(self, name) - sum(part[name] for part in named) for name in ModelUsage.model_fields}
        return ModelUsage(**rest)

    def __add__(self, other: Usage) -> Usage:
        """Adds two costs field by field."""
        models = {name: self.by_model[name] for name in self.by_model}
        for name, part in other.by_model.items():
            if name in models or len(models) < _MOST_MODELS:
                models[name] = ModelUsage(**_added(models.get(name, ModelUsage()), part))
        return Usage(**_added(self, other), seconds=round(self.seconds + other.seconds, 3), by_model=models)


def _added(one: ModelUsage, other: ModelUsage) -> dict[str, int]:
    return {name: getattr(one, name) + getattr(other, name) for name in ModelUsage.model_fields}


def usage_of(messages: Iterable[BaseMessage], seconds: float = 0.0) -> Usage:
    """The cost of these messages, which took this many seconds; messages of users and tools cost nothing.

    A message without usage data counts as a call with 0 tokens.
    """
    total = Usage(seconds=round(seconds, 3))
    for message in messages:
        outcome = message.additional_kwargs.get("outcome")
        if not isinstance(message, AIMessage) or (outcome and not outcome.get("reply")):
            continue  # not a model's reply
        told = message.usage_metadata
        cached = told.get("input_token_details", {}).get("cache_read", 0) if told else 0
        part = ModelUsage(
            calls=message.response_metadata.get(_CALLS, 1),
            input_tokens=told["input_tokens"] if told else 0,
            output_tokens=told["output_tokens"] if told else 0,
            cached_tokens=cached or 0,
        )
        model = _model_of(message)
        total += Usage(**part.model_dump(), by_model={model: part} if model else {})
    return total


def with_usage_of(message: AIMessage, discarded: AIMessage) -> AIMessage:
    """The message with the cost of a discarded one added; of an unnamed model if they are of two."""
    calls = sum(one.response_metadata.get(_CALLS, 1) for one in (message, discarded))
    named = {} if _model_of(message) == _model_of(discarded) else {_MODEL: ""}
    return message.model_copy(
        update={
            "usage_metadata": add_usage(discarded.usage_metadata, message.usage_metadata),
            "response_metadata": {**message.response_metadata, **named, _CALLS: calls},
        }
    )


def _model_of(message: AIMessage) -> str:
    """The model of a response, ``provider:name`` as far as it says so, on one short line; empty if it does not."""
    name, provider = (message.response_metadata.get(field) for field in (_MODEL, _PROVIDER))
    if not isinstance(name, str) or not name.strip():
        return ""
    full = f"{provider[:_LONGEST_NAME]}:{name}" if isinstance(provider, str) and provider else name
    return " ".join(shown(full[: 2 * _LONGEST_NAME], most=_LONGEST_NAME).split())
