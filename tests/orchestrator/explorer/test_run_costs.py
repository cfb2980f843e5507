"""What runs cost: the models that answered, their prices, and models without one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from callsheet.agents import Price, Prices, Usage, read_prices
from callsheet.agents.calls.token_usage import usage_of, with_usage_of
from callsheet.graphs import Catalog, SettingsError
from explored import explorer
from hostile import BREAKOUT
from kept_runs import REVISED, Kept, moment

Asked = Callable[..., Any]
MINI = Price(input=1, cached=0.5, output=10)
EUROS = Prices(currency="EUR", models={"openai:gpt-5-mini": MINI})


def said(model: Any, read: int = 1_000_000, cached: int = 0, **more: Any) -> AIMessage:
    details: Any = {"input_tokens": read, "output_tokens": 100_000, "total_tokens": read + 100_000}
    details["input_token_details"] = {"cache_read": cached}
    return AIMessage("", usage_metadata=details, response_metadata={"model_name": model, **more})


def test_the_cost_is_that_of_each_models_tokens_cached_ones_at_their_price() -> None:
    dated = said("gpt-5-mini-2025-08-07", cached=400_000, model_provider="openai")
    usage = usage_of([dated, dated]) + usage_of([said("gpt-5-mini")])
    assert {name: part.calls for name, part in usage.by_model.items()} == {
        "openai:gpt-5-mini-2025-08-07": 2,
        "gpt-5-mini": 1,
    }
    assert EUROS.cost(usage).amount == pytest.approx(2 * (0.6 + 0.2 + 1) + (1 + 1))
    assert str(EUROS.cost(usage)) == "5.60 EUR"
    assert str(EUROS.cost(Usage())) == "0.00 EUR"
    small = Usage(calls=1, input_tokens=1234, by_model={"gpt-5-mini": {"calls": 1, "input_tokens": 1234}})
    assert str(EUROS.cost(small)) == "0.0012 EUR"


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([said("gpt-5")], "no price is known for gpt-5"),
        ([said("gpt-5-mini", model_provider="azure")], "no price is known for azure:gpt-5-mini"),
        ([said("gpt-5-mini"), said(None)], "2.00 EUR; no price is known for a model that is not named"),
        ([AIMessage("", response_metadata={"model_name": "gpt-5-mini"})], "no price is known for gpt-5-mini"),
        ([said({"name": "gpt-5-mini"})], "no price is known for a model that is not named"),
    ],
    ids=["another", "another provider", "unnamed", "without tokens", "no text"],
)
def test_what_has_no_price_is_named_and_not_free(messages: list[AIMessage], told: str) -> None:
    assert str(EUROS.cost(usage_of(messages))) == told


def test_two_prices_that_fit_equally_are_no_price() -> None:
    prices = Prices(models={"openai:gpt-oss": MINI, "groq:gpt-oss": MINI})
    assert (prices.price("groq:gpt-oss"), prices.price("gpt-oss")) == (MINI, None)


def test_the_names_of_models_are_short_clean_and_few() -> None:
    usage = usage_of([said(f"{BREAKOUT}\n\u202e{'x' * 1_000_000}", model_provider="y" * 1_000_000)])
    (name,) = usage.by_model
    assert (len(name) <= 120, "\n" in name, "\u202e" in name) == (True, False, False)
    many = usage_of([said(f"m{i}") for i in range(1_000)])
    assert (len(many.by_model), many.calls, many.unnamed.calls) == (16, 1_000, 984)


def test_a_discarded_message_of_another_model_has_no_name() -> None:
    assert list(usage_of([with_usage_of(said("a"), said("a"))]).by_model) == ["a"]
    mixed = usage_of([with_usage_of(said("a"), said("b"))])
    assert (dict(mixed.by_model), mixed.calls, mixed.input_tokens) == ({}, 2, 2_000_000)


def test_a_file_of_prices_is_read_with_its_currency(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"currency": "EUR", "openai:gpt-5-mini": MINI.model_dump()}))
    assert read_prices(file) == EUROS
    assert read_prices(None) == Prices(currency="USD")
    for wrong in ('{"currency": "euro"}', '{"m": {"input": -1, "output": 1}}', '{"m": {"input": 1e999, "output": 1}}'):
        file.write_text(wrong)
        with pytest.raises(SettingsError, match="not a table of prices"):
            read_prices(file)


def shown(asked: Asked, catalog: Catalog, state: dict[str, Any], prices: Prices | None = EUROS) -> Any:
    (run,) = asked(explorer(catalog, runs=Kept([moment("a", "01", **state)]), prices=prices), "run", id="t")
    return run


def test_the_page_is_told_the_cost_by_role_model_and_step_also_of_a_run_that_has_not_ended(
    catalog: Catalog, asked: Asked
) -> None:
    worker, planner = usage_of([said("gpt-5-mini")]), usage_of([said(BREAKOUT)])
    result = {"status": "done", "result": "", "error": "", "attempts": 1, "usage": worker.model_dump()}
    state = {"results": {"1": result}, "spent": {"plan 0": planner.model_dump()}}
    run = shown(asked, catalog, state)
    assert (run["status"], run["usage"]["calls"], run["usage"]["cost"]["amount"]) == ("stopped", 2, 2.0)
    assert run["usage"]["cost"]["words"] == f"2.00 EUR; no price is known for {BREAKOUT}"[:4096]
    told = [(one["role"], one["model"], one["cost"]["amount"]) for one in run["models"]]
    assert told == [("planner", BREAKOUT, None), ("worker", "gpt-5-mini", 2.0)]
    first, second = run["steps"]
    assert (first["usage"]["cost"]["words"], second["usage"]) == ("2.00 EUR", None)
    assert shown(asked, catalog, state, None)["usage"]["cost"]["amount"] is None


def test_a_run_of_before_does_not_name_its_models(catalog: Catalog, asked: Asked) -> None:
    usage = {**REVISED.values["usage"], "by_role": {"worker": {"calls": 3, "input_tokens": 300, "output_tokens": 30}}}
    run = shown(asked, catalog, {"usage": usage})
    assert run["usage"]["cost"]["words"] == "no price is known for a model that is not named"
    assert [(one["model"], one["calls"]) for one in run["models"]] == [("", 3)]
