"""Counts metrics of this process for Prometheus; without ``prometheus-client``, it does nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from callsheet.graphs.errors import SettingsError, needs_extra

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from callsheet.agents import StepResult
    from callsheet.retrievers import AgentGraphRetriever, Selection

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class _Figures:
    """The metrics of this process."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self.registry = mine = CollectorRegistry()
        self.retrieval = Histogram(
            "callsheet_retrieval_seconds", "How long a retrieval took.", buckets=_SECONDS, registry=mine
        )
        self.nothing = Counter("callsheet_nothing_fits", "Retrievals without a fitting tool.", registry=mine)
        self.picks = Counter("callsheet_picks", "Selections of an agent.", ["agent"], registry=mine)
        self.steps = Counter("callsheet_steps", "Steps by status.", ["status"], registry=mine)
        self.calls = Counter("callsheet_calls", "Tool calls by agent.", ["agent"], registry=mine)
        failed = "Failed tool calls by agent and kind of error."
        self.failures = Counter("callsheet_call_failures", failed, ["agent", "kind"], registry=mine)


@cache
def _figures() -> _Figures | None:
    return _Figures() if find_spec("prometheus_client") else None


def select_measured(retriever: AgentGraphRetriever, query: str, **changes: Any) -> Selection:
    """Calls ``retriever.select``, and counts its duration and the selected tools."""
    began = time.perf_counter()
    selection = retriever.select(query, **changes)
    count_selections([selection], time.perf_counter() - began)
    return selection


def count_selections(selections: Iterable[Selection], seconds: float) -> None:
    """Counts a retrieval with its duration in seconds, and the selected tools."""
    figures = _figures()
    if figures is None:
        return
    figures.retrieval.observe(seconds)
    for selection in selections:
        if selection.verdict == "nothing_fits":
            figures.nothing.inc()
            continue
        for agent in selection.agents:
            figures.picks.labels(agent.id).inc()


def count_result(result: StepResult) -> None:
    """Counts a finished step and its calls."""
    figures = _figures()
    if figures is not None:
        figures.steps.labels(result.status).inc()
    for call in result.calls:
        count_call(call.agent, (call.kind or "tool") if call.error else "")


def count_call(agent: str, failure: str = "") -> None:
    """Counts a call, with the kind of its error if it failed."""
    figures = _figures()
    if figures is not None:
        figures.calls.labels(agent).inc()
        if failure:
            figures.failures.labels(agent, failure).inc()


def exposition(may_see: Callable[[str], bool], unavailable: Iterable[str] = (), waiting: int | None = None) -> str:
    """Returns the metrics in Prometheus's text format.

    Raises:
        SettingsError: ``prometheus-client`` is missing.
    """
    figures = _figures()
    if figures is None:
        raise SettingsError(f"/callsheet/metrics {needs_extra('server')}")
    from prometheus_client import generate_latest
    from prometheus_client.metrics_core import GaugeMetricFamily

    down = GaugeMetricFamily("callsheet_agent_unavailable", "Agents that are not called for now.", labels=["agent"])
    for agent in unavailable:
        down.add_metric([agent], 1)
    found = [*figures.registry.collect(), down]
    if waiting is not None:
        found.append(GaugeMetricFamily("callsheet_approvals_waiting", "Questions that wait for a person.", waiting))
    registry: Any = SimpleNamespace(collect=lambda: [_without(metric, may_see) for metric in found])
    return generate_latest(registry).decode()


def _without(metric: Metric, may_see: Callable[[str], bool]) -> Metric:
    metric.samples = [s for s in metric.samples if "agent" not in s.labels or may_see(s.labels["agent"])]
    return metric
