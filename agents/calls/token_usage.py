"""Cost of model calls: number, tokens, seconds, and the price from a file of the user."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import add_usage
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.text.sanitizing import shown

_CALLS, _MODEL, _PROVIDER = "model_calls", "model_name", "model_provider"
_MOST_MODELS, _LONGEST_NAME = 16, 120
_MILLION = 1_000_000
_FORM = '{"openai:gpt-5-mini": {"input": 0.25, "cached": 0.025, "output": 2}}'
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
_UNNAMED = "a model that is not named"
_TABLE = TypeAdapter(dict[str, Any])


class ModelUsage(BaseModel):
    """Tokens of some calls of one model; input tokens include those that the provider read from its cache."""

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
    def from_report(cls, report: Mapping[str, Any]) -> Usage:
        """The cost in a report of the supervisor, which has further fields."""
        return cls(**{name: report[name] for name in cls.model_fields if name in report})

    @property
    def unnamed(self) -> ModelUsage:
        """The part of models that are not named."""
        rest = {name: sum(getattr(part, name) for part in self.by_model.values()) for name in ModelUsage.model_fields}
        return ModelUsage(**{name: getattr(self, name) - named for name, named in rest.items()})

    def __add__(self, other: Usage) -> Usage:
        """Adds two costs field by field."""
        models = dict(self.by_model)
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
        reported: Mapping[str, Any] = message.usage_metadata or {}
        part = ModelUsage(
            calls=message.response_metadata.get(_CALLS, 1),
            input_tokens=reported.get("input_tokens", 0),
            output_tokens=reported.get("output_tokens", 0),
            cached_tokens=reported.get("input_token_details", {}).get("cache_read") or 0,
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


class Price(BaseModel):
    """The price of a model, per million tokens; ``cached`` is by default that of ``input``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    output: float = Field(ge=0)

    def of(self, usage: ModelUsage) -> float:
        """What some model calls cost, in the currency of the prices."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / _MILLION


@dataclass(frozen=True, slots=True)
class Cost:
    """What model calls cost: the sum over the models with a known price (None if there is none), and the others."""

    amount: float | None
    currency: str
    unpriced: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The amount with its currency, and the models without a known price."""
        unknown = f"no price is known for {', '.join(self.unpriced)}"
        if self.amount is None:
            return unknown
        return f"{_digits(self.amount)} {self.currency}" + (f"; {unknown}" if self.unpriced else "")


class Prices(BaseModel):
    """Prices of models, by the name for ``--model`` (``openai:gpt-5-mini``), or without its provider."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")
    models: Mapping[str, Price] = Field(default_factory=dict)

    def price(self, model: str) -> Price | None:
        """The price of a model by the name in its responses, also if only the response has a date or a provider.

        ``gpt-5-mini-2025-08-07`` has the price of ``openai:gpt-5-mini``, unless the date has one of its own.
        """
        for name in dict.fromkeys((model, _DATED.sub("", model))):
            if name in self.models:
                return self.models[name]
            similar = [key for key in self.models if name == _bare(key) or key == _bare(name)]
            if len(similar) == 1:
                return self.models[similar[0]]
        return None

    def cost(self, usage: Usage) -> Cost:
        """What some model calls cost. A model that reports no tokens has no known price."""
        if not usage.calls:
            return Cost(0.0, self.currency)
        priced, unpriced = list[float](), list[str]()
        for name, part in usage.by_model.items():
            price = self.price(name) if part.tokens else None
            if price is None:
                unpriced.append(name)
            else:
                priced.append(price.of(part))
        if usage.unnamed.tokens or not usage.by_model:
            unpriced.append(_UNNAMED)
        return Cost(sum(priced) if priced else None, self.currency, tuple(unpriced))


def read_prices(path: Path | None) -> Prices:
    """Reads a file ``{"currency": "EUR", "openai:gpt-5-mini": {"input": 0.25, "cached": 0.025, "output": 2}}``.

    Without ``currency``, prices are in US dollars; without a file, there are none.

    Raises:
        SettingsError: The file cannot be read.
    """
    if path is None:
        return Prices()
    try:
        table = _TABLE.validate_json(path.read_text(encoding="utf-8"))
        return Prices(currency=table.pop("currency", "USD"), models=table)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{path} is not a table of prices, as {_FORM}: {error}") from error


def price_of(model: str, path: Path | None) -> Price | None:
    """The price of a model in a file of prices; None without a file.

    Raises:
        SettingsError: The file cannot be read, or does not have the model.
    """
    if path is None:
        return None
    prices = read_prices(path).models
    if model not in prices:
        raise SettingsError(f"{path} has no price of {model!r}: it has {', '.join(sorted(prices)) or 'none'}")
    return prices[model]


def _bare(name: str) -> str:
    """The name after its provider; empty if it has no provider."""
    return name.partition(":")[2]


def _digits(amount: float) -> str:
    """An amount with two decimals, and with two significant digits if it is small."""
    if 0 < amount < 0.000001:
        return "<0.000001"
    return f"{amount:,.{max(2, 1 - math.floor(math.log10(amount))) if amount else 2}f}"
