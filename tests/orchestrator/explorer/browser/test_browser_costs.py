"""The page in a real browser: what a run cost, there and in what is saved of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callsheet.graphs import Catalog
from chromium import Browser
from explored import explorer
from explored_page import saved
from kept_runs import COSTLY, PRICES, REVISED, Kept

pytestmark = pytest.mark.server
Show = Callable[..., Browser]
COST = "0.0011 EUR; no price is known for vllm:a-model-with-a-long-name-a"


def test_the_cost_is_shown_with_its_currency_and_the_models_without_a_price(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([COSTLY]), prices=PRICES), "#/runs?id=t")
    page.wait("document.querySelector('.run-models tbody tr')")
    head = page.run("document.querySelector('.run-head .small').textContent")
    assert "3 model calls, 6,000 input tokens (4,000 cached), 430 output tokens" in head
    assert COST in head
    rows = page.run("[...document.querySelectorAll('.run-models tr')].map((row) => row.innerText.split('\\t'))")
    assert rows[0] == ["role", "model", "cost", "calls", "input tokens", "of them cached", "output tokens"]
    told = [(role, model[:10], cost, calls) for role, model, cost, calls, *_ in rows[1:]]
    assert told == [("planner", "vllm:a-mod", "no price is known", "1"), ("worker", "openai:gpt", "0.0011 EUR", "2")]
    assert "5,540 tokens; 0.0011 EUR" in page.run("document.querySelector('.steps summary').textContent")
    assert COST in saved(page, "HTML page")
    assert page.complaints == []


def test_without_prices_a_run_is_not_free(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([REVISED])), "#/runs?id=t")
    page.wait("document.querySelector('.run-head .small')")
    head = page.run("document.querySelector('.run-head').textContent")
    assert "no price is known for a model that is not named" in head
    assert page.complaints == []
