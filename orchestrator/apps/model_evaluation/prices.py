"""Prices of models, from a file of the user."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from callsheet.agents import Usage
from callsheet.graphs import SettingsError

_MILLION = 1_000_000


class Price(BaseModel):
    """The price of a model, per million tokens.

    Attributes:
        input: Of input tokens.
        cached: Of input tokens read from the provider's cache; by default that of ``input``.
        output: Of output tokens.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    output: float = Field(ge=0)

    def of(self, usage: Usage) -> float:
        """What some model calls cost, in the currency of the prices."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / _MILLION


class _Prices(RootModel[dict[str, Price]]):
    """Model name -> price."""


def price_of(model: str, path: Path | None) -> Price | None:
    """The price of a model in a file ``{"openai:gpt-5-mini": {"input": 0.25, "cached": 0.025, "output": 2}}``.

    Returns:
        None without a file.

    Raises:
        SettingsError: The file cannot be read, or does not have the model.
    """
    if path is None:
        return None
    try:
        prices = _Prices(json.loads(path.read_text(encoding="utf-8"))).root
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, ValidationError) as error:
        form = '{"openai:gpt-5-mini": {"input": 0.25, "cached": 0.025, "output": 2}}'
        raise SettingsError(f"{path} is not a table of prices, as {form}: {error}") from error
    if model not in prices:
        raise SettingsError(f"{path} has no price of {model!r}: it has {', '.join(sorted(prices)) or 'none'}")
    return prices[model]
