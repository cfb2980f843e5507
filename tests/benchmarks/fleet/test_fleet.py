"""What is measured of a fleet, over small servers of our own."""

from __future__ import annotations

import sys

import pytest

from benchmarks.fleet import fleet_costs
from callsheet.graphs import ServerConfig
from servers import FIXTURES


def test_a_difference_of_medians_is_in_milliseconds() -> None:
    found = fleet_costs.difference_of_medians([0.004, 0.005, 0.006], [0.001, 0.002, 0.003])
    assert found.mean == pytest.approx(3.0)
    assert found.low <= 3.0 <= found.high


def test_without_a_fleet_calls_of_a_small_server_are_measured() -> None:
    body = fleet_costs.measure(None, lambda line: None, quick=True)
    (row,) = body["rows"]  # type: ignore[misc]
    assert row[0] == "a call of small/work, ms"
    assert len(row) == len(fleet_costs.COLUMNS)
    assert 0 < float(row[2]) < float(row[3])


def test_a_catalog_with_bad_ones_is_measured_and_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_costs, "START", 5.0)
    ok = ServerConfig(command=sys.executable, args=(str(FIXTURES / "fault_server.py"), "ok"))
    row = fleet_costs._with_bad_ones({f"s{i}": ok for i in range(6)})
    assert row[0] == "a catalog of 3 of 6, three bad ones named, s"
    assert float(row[3]) >= 5


def test_opening_is_compared_with_the_slowest() -> None:
    ok = ServerConfig(command=sys.executable, args=(str(FIXTURES / "fault_server.py"), "ok"))
    meanwhile, alone = fleet_costs._openings({f"s{i}": ok for i in range(3)}, 1)
    assert meanwhile[0] == alone[0] == "opening 3 servers at once, s"
    assert float(meanwhile[4]) >= 1.0
