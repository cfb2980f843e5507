"""What runs are counted by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from callsheet.agents import Call, StepResult
from callsheet.graphs import Loaded, SettingsError
from callsheet.orchestrator.run import run_metrics
from callsheet.orchestrator.supervisor import create_supervisor
from callsheet.retrievers import AgentGraphRetriever
from explored import served
from fake_agents import FakeAgents
from small import small_catalog

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    run_metrics._figures.cache_clear()
    yield
    run_metrics._figures.cache_clear()


def told(**more: Any) -> Samples:
    text = run_metrics.exposition(lambda _: True, **more)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_retrieval_is_timed_and_its_agents_are_counted() -> None:
    retriever = AgentGraphRetriever.from_catalog(small_catalog(), index=":memory:")
    found = run_metrics.select_measured(retriever, "weather forecast for a place", agents=2)
    assert run_metrics.select_measured(retriever, "zzz qqq").verdict == "nothing_fits"
    samples = told()
    assert samples["callsheet_retrieval_seconds_count", ()] == 2
    assert samples["callsheet_retrieval_seconds_bucket", (("le", "+Inf"),)] == 2
    assert samples["callsheet_nothing_fits_total", ()] == 1
    for agent in found.agents:
        assert samples["callsheet_picks_total", (("agent", agent.id),)] == 1


def test_without_the_extra_nothing_is_counted_and_the_metrics_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_metrics, "find_spec", lambda name: None)
    assert run_metrics.select_measured(served(small_catalog()).retriever, "weather forecast for a place").agents
    run_metrics.count_result(StepResult(id="1", text="x", calls=(Call(agent="a", tool="x", error="x"),)))
    with pytest.raises(SettingsError, match=r"pip install '\.\[server\]'"):
        told()


def test_agents_that_are_down_and_questions_that_wait_are_told_as_they_are_now() -> None:
    samples = told(unavailable={"weather": "it crashed"}, waiting=2)
    assert samples["callsheet_agent_unavailable", (("agent", "weather"),)] == 1
    assert samples["callsheet_approvals_waiting", ()] == 2
    assert ("callsheet_approvals_waiting", ()) not in told()


async def test_a_run_counts_its_steps_its_calls_and_the_failures_of_each_agent(
    shop: FakeAgents, catalog: Loaded
) -> None:
    shop.broken.add("exchange_rate")
    found = served(catalog)
    app = create_supervisor(catalog, retriever=found.retriever, registry=found.registry).compile()
    given: Any = {"messages": [("user", "Look up the exchange rate of the currency 'USD' in euro.")]}
    state = await app.ainvoke(given)
    samples = told()
    (result,) = state["results"].values()
    failed = [call for call in result["calls"] if call["error"]]
    assert failed
    assert samples["callsheet_steps_total", (("status", result["status"]),)] >= 1
    assert samples["callsheet_calls_total", (("agent", "bank"),)] >= 1
    assert samples["callsheet_call_failures_total", (("agent", "bank"), ("kind", failed[0]["kind"]))] >= 1
    assert samples["callsheet_picks_total", (("agent", "bank"),)] >= 1
