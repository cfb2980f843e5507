"""Prices of models, from a file of the user."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from callsheet.agents.calls.token_usage import ModelUsage, Usage
from callsheet.graphs.catalog.errors import SettingsError

_MILLION = 1_000_000
_FORM = '{"openai:gpt-5-mini": {"input": 0.25, "cached": 0.025, "output": 2}}'
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
_UNNAMED = "a model that is not named"
_TABLE = TypeAdapter(dict[str, Any])


class Price(BaseModel):
    """The price of a model, per million tokens.

    Attributes:
        input: Of input tokens.
        cached: Of input tokens read from the provider's cache; by default that of ``input``.
        output: Of output tokens.
    """

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
    """What model calls cost.

    Attributes:
        amount: The sum over the models with a known price; None if there is none.
        currency: Its currency, an ISO 4217 code.
        unpriced: The other models.
    """

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
    """Prices of models.

    Attributes:
        currency: Their currency, an ISO 4217 code.
        models: Model -> its price, by the name for ``--model`` (``openai:gpt-5-mini``), or without its provider.
    """

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
            found = {key for key in self.models if name in _without_provider(key) or key in _without_provider(name)}
            if len(found) == 1:
                return self.models[found.pop()]
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

    Without ``currency``, prices are in US dollars.

    Args:
        path: The file; None has no prices.

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
    """The price of a model in a file of prices.

    Returns:
        None without a file.

    Raises:
        SettingsError: The file cannot be read, or does not have the model.
    """
    if path is None:
        return None
    prices = read_prices(path).models
    if model not in prices:
        raise SettingsError(f"{path} has no price of {model!r}: it has {', '.join(sorted(prices)) or 'none'}")
    return prices[model]


def _without_provider(name: str) -> tuple[str, ...]:
    """The name after its provider; none if it has no provider."""
    return tuple(filter(None, [name.partition(":")[2]]))


def _digits(amount: float) -> str:
    """An amount with two decimals, and with two significant digits if it is small."""
    if 0 < amount < 0.000001:
        return "<0.000001"
    return f"{amount:,.{max(2, 1 - math.floor(math.log10(amount))) if amount else 2}f}"
