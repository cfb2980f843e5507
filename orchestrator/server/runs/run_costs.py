"""Tokens and costs of a run's models, as the page shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from callsheet.agents import Cost, ModelUsage, Prices, Usage
from callsheet.orchestrator.plans.run_limits import usage_report
from callsheet.orchestrator.server.runs.pending_questions import Line, Shown, Text


class CostShown(Shown):
    """A ``Cost``, and the same in words."""

    amount: float | None
    currency: str
    unpriced: tuple[Line, ...]
    words: Text


class UsageShown(Shown):
    """Model calls, tokens, and what they cost."""

    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: CostShown


class ModelUsageShown(UsageShown):
    """What one role (``planner``, ``worker`` ...) spent on one model; empty for a model that is not named."""

    role: Line
    model: Line


class RunCosts:
    """What a run has spent so far.

    Args:
        state: The supervisor's state.
        prices: The known prices.
    """

    def __init__(self, state: Mapping[str, Any], prices: Prices) -> None:
        given: Any = {**state}
        report: Mapping[str, Any] = state.get("usage") or usage_report(given)
        self._report, self._prices = report, prices

    @property
    def total(self) -> UsageShown | None:
        """The total; None if no model was called."""
        return self._usage(self._report)

    def step(self, name: str) -> UsageShown | None:
        """What a step spent; None if no model was called."""
        return self._usage((self._report.get("by_step") or {}).get(name) or {})

    @property
    def models(self) -> tuple[ModelUsageShown, ...]:
        """The parts of the total."""
        return tuple(self._models())

    def _models(self) -> Iterator[ModelUsageShown]:
        for role, told in (self._report.get("by_role") or {}).items():
            usage = Usage.from_report(told)
            for model, part in {**usage.by_model, "": usage.unnamed}.items():
                if part.calls:
                    named = {model: part} if model else {}
                    spent = Usage(**part.model_dump(), by_model=named)
                    yield ModelUsageShown(role=role, model=model, **self._fields(spent))

    def _usage(self, told: Mapping[str, Any]) -> UsageShown | None:
        usage = Usage.from_report(told)
        return UsageShown(**self._fields(usage)) if usage.calls else None

    def _fields(self, usage: Usage) -> dict[str, Any]:
        counts = {name: getattr(usage, name) for name in ModelUsage.model_fields}
        return {**counts, "cost": _shown(self._prices.cost(usage))}


def _shown(cost: Cost) -> CostShown:
    return CostShown(amount=cost.amount, currency=cost.currency, unpriced=cost.unpriced, words=str(cost))
