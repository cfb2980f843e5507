"""The examples run as they stand."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Run = Callable[[str], str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an example as ``python -m`` does from the checkout, in this process; gives what it prints."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))

    def printed(module: str) -> str:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return str(capsys.readouterr().out)

    return printed


def test_find_tools_brings_what_the_forecast_depends_on(run: Run) -> None:
    out = run("examples.catalogs.find_tools")
    assert out.startswith("weather ")
    assert "weather/forecast > phone/get_location (required)" in out
    assert "calendar ['calendar/list_events'" in out


def test_an_example_with_own_tools_does_both_steps(run: Run) -> None:
    out = run("examples.own_tools")
    assert "done ['orders/order_status']" in out
    assert "done ['mail/send_mail']" in out
    assert "sent to ann@example.org" in out


def test_an_example_uses_the_retriever_in_another_agent(run: Run) -> None:
    out = run("examples.own_agent")
    assert out.splitlines() == ["sunny in Oslo", "Louvre is open from 10 to 18"]


def test_a_deep_agent_with_tools_behind_it(run: Run) -> None:
    out = run("examples.deep_agent")
    weather, asked, sent = out.splitlines()
    assert (weather, sent) == ("sunny in Oslo", "sent to ann@example.org")
    assert asked.startswith("May I? {'name': 'post_send_mail', 'args': {'to': 'ann@example.org'}")


def test_an_example_has_a_supervisor_over_agents_and_tools(run: Run) -> None:
    out = run("examples.own_supervisor")
    assert "done ['orders/order_status'] ORD-551 was shipped on Monday" in out
    assert "done ['forecaster/run'] sunny in Rome" in out
    assert "done ['mail/send_mail'] sent to ann@example.org" in out


def test_an_example_evaluates_a_catalog(run: Run) -> None:
    out = run("examples.own_evaluation")
    assert "agent.recall@1" in out
    assert "lacks files/share_document: cut: the budget is spent" in out


def test_an_example_calls_an_api_by_its_specification(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BOOKSHOP_URL", "BOOKSHOP_KEY"):
        monkeypatch.setenv(name, "")
    out = run("examples.catalogs.own_api")
    assert "done ['bookshop-books/tell_price']" in out
    assert "12 EUR" in out


def test_an_example_reads_a_folder_of_skills(run: Run) -> None:
    out = run("examples.catalogs.own_skills")
    assert "skills/incident-report with operations/outage_log: # Incident reports" in out
    assert out.count("skills/") == 1


@pytest.mark.parametrize(
    "name", ["catalogs/own_api", "catalogs/own_skills", "deep_agent", "own_agent", "own_supervisor", "own_evaluation"]
)
def test_the_examples_are_short(name: str) -> None:
    assert len((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 40
