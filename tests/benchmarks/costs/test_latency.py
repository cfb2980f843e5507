"""What a query costs beside its embedding."""

from __future__ import annotations

from benchmarks.costs.latency import _processor, cost
from benchmarks.sets.generated import generated_catalog, generated_queries


def test_the_cost_of_a_small_catalog_is_measured() -> None:
    found = cost("small", generated_catalog(20), generated_queries(4), drawn=True)
    assert found.tools == 20
    assert found.ratio.low <= found.ratio.mean <= found.ratio.high
    assert found.repeated_ms < found.select_ms
    assert found.at_once_ratio > 0


def test_processor_time_counts_every_thread() -> None:
    def work(query: str) -> int:
        return sum(range(int(query)))

    assert _processor(work, ["2000000"] * 4, 4) > 2 * _processor(work, ["2000000"], 1)
