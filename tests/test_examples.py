"""The examples run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(module: str, home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={**os.environ, "CALLSHEET_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_find_tools_brings_what_the_forecast_depends_on(tmp_path: Path) -> None:
    out = run("examples.find_tools", tmp_path)
    assert out.startswith("weather ")
    assert "weather/forecast > phone/get_location (required)" in out
    assert "calendar ['calendar/list_events'" in out


def test_own_tools_does_both_steps(tmp_path: Path) -> None:
    out = run("examples.own_tools", tmp_path)
    assert "done ['orders/order_status']" in out
    assert "done ['mail/send_mail']" in out
    assert "sent to ann@example.org" in out


def test_the_retriever_in_an_agent_of_ones_own(tmp_path: Path) -> None:
    out = run("examples.own_agent", tmp_path)
    assert out.splitlines() == ["sunny in Oslo", "Louvre is open from 10 to 18"]


def test_the_supervisor_over_agents_and_tools_of_ones_own(tmp_path: Path) -> None:
    out = run("examples.own_supervisor", tmp_path)
    assert "done ['orders/order_status'] ORD-551 was shipped on Monday" in out
    assert "done ['forecaster/run'] sunny in Rome" in out
    assert "done ['mail/send_mail'] sent to ann@example.org" in out


def test_the_evaluation_of_ones_own_catalog(tmp_path: Path) -> None:
    out = run("examples.own_evaluation", tmp_path)
    assert "agent.recall@1" in out
    assert "complete@10" in out
    assert " lacks " in out


@pytest.mark.parametrize("name", ["own_agent", "own_supervisor", "own_evaluation"])
def test_they_are_short(name: str) -> None:
    assert len((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 40
