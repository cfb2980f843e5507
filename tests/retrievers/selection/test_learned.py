"""Outcomes of earlier calls decide between tools that fit equally, and nothing else."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from callsheet.graphs import Agent, Catalog, Policy, Tool, dump
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Outcomes
from callsheet.graphs.trust.policy import Grants
from callsheet.retrievers import AgentGraphRetriever, SelectSettings, explain_tool
from callsheet.retrievers.selection.scoring import outcome_shift
from callsheet.retrievers.selection.step_selection import StepNeed

QUERY = "Tell the weather forecast of Oslo"


def agent(name: str, *tools: str) -> Agent:
    return Agent(id=name, tools=tuple(Tool(agent=name, name=tool, description="Weather forecast.") for tool in tools))


CATALOG = Catalog(
    agents=(
        agent("meteo-one", "forecast"),
        agent("meteo-two", "forecast"),
        Agent(id="bank", tools=(Tool(agent="bank", name="rate", description="Exchange rate of a currency."),)),
    )
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def place(home: Path) -> Path:
    (home / "callsheet.json").write_text(dump(CATALOG), encoding="utf-8")
    return home / "callsheet.json"


def test_the_weight_of_outcomes_is_computed_as_written() -> None:
    """Two calls that succeeded are assumed: after 3 failures in 4 calls, reliability is (1 + 2) / (4 + 2) = .5."""
    assert outcome_shift(0, 0, temperature=0.04) == 0
    assert outcome_shift(9, 0, temperature=0.04) == 0
    assert outcome_shift(1, 3, temperature=0.04) == pytest.approx(0.04 * math.log(0.5))
    assert (
        outcome_shift(0, 1000, temperature=0.04)
        == pytest.approx(0.04 * math.log(0.1))
        == pytest.approx(-0.0921, abs=1e-4)
    )


def test_the_more_reliable_of_equal_tools_comes_first(place: Path) -> None:
    retriever = AgentGraphRetriever.from_catalog(place)
    first = retriever.select(QUERY)
    assert [agent.id for agent in first.agents[:2]] == ["meteo-one", "meteo-two"]
    OutcomeLog().add({"meteo-one/forecast": Outcomes(done=1, failed=20)}, CATALOG)
    later = retriever.select(QUERY)
    assert [agent.id for agent in later.agents[:2]] == ["meteo-two", "meteo-one"]
    assert [tool.id for tool in later.tools[:2]] == ["meteo-two/forecast", "meteo-one/forecast"]
    assert explain_tool("meteo-one/forecast", later).endswith("failed in 20 of 21 earlier calls")
    assert "failed" not in explain_tool("meteo-two/forecast", later)
    assert later.trace.strength == first.trace.strength
    assert retriever.select(QUERY, learned=False).tools_of == first.tools_of
    OutcomeLog().forget("meteo-one/*")
    assert retriever.select(QUERY).tools_of == first.tools_of


@pytest.mark.parametrize("policy", [None, Policy(default="allow"), Policy(default="allow", users={"ann": Grants()})])
def test_where_users_are_told_apart_outcomes_count_only_if_the_policy_says_so(
    place: Path, policy: Policy | None
) -> None:
    for user in ("", *(f"user{number}" for number in range(9))):
        OutcomeLog().add({"meteo-one/forecast": Outcomes(failed=20)}, CATALOG, user)
    retriever = AgentGraphRetriever.from_catalog(place, policy=policy).within("ann")
    assert retriever.select(QUERY).agents[0].id == "meteo-one"
    assert retriever.select(QUERY, learned=True).agents[0].id == "meteo-one"
    assert retriever.select_steps([StepNeed(QUERY)])[0].agents[0].id == "meteo-one"
    shared = AgentGraphRetriever.from_catalog(place, policy=Policy(default="allow", shared_outcomes=True)).within("ann")
    assert shared.select(QUERY).agents[0].id == "meteo-two"
    assert shared.select(QUERY, learned=False).agents[0].id == "meteo-one"


def test_a_tool_that_fits_stays_before_one_that_does_not(place: Path) -> None:
    retriever = AgentGraphRetriever.from_catalog(place)
    OutcomeLog().add({"bank/rate": Outcomes(failed=99)}, CATALOG)
    found = retriever.select("Look up the exchange rate of the dollar")
    assert (found.tools[0].id, found.verdict) == ("bank/rate", "found")


def test_a_catalog_in_memory_or_with_the_setting_off_learns_nothing(place: Path) -> None:
    OutcomeLog().add({"meteo-one/forecast": Outcomes(failed=9)}, CATALOG)
    for retriever in (
        AgentGraphRetriever.from_catalog(CATALOG),
        AgentGraphRetriever.from_catalog(place, settings=SelectSettings(learned=False)),
    ):
        assert retriever.select(QUERY).agents[0].id == "meteo-one"


def test_observed_dependencies_are_used_with_the_next_start(place: Path) -> None:
    ObservationLog().add({("bank/rate", "meteo-two/forecast", "day"): 9})
    edge = AgentGraphRetriever.from_catalog(place).catalog.tool("bank/rate").depends_on[0]
    assert (edge.tool, edge.provenance, edge.count, edge.required) == ("meteo-two/forecast", "observed", 9, False)
    assert "bank/rate" in AgentGraphRetriever.from_catalog(place).select("exchange rate", tools=2).tools[0].id


def test_a_damaged_file_of_observations_stops_no_search(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = ObservationLog()
    log.add({("a/b", "c/d", "e"): 1})
    log.file.replace(b"{")
    assert AgentGraphRetriever.from_catalog(place).select(QUERY).tools
    assert "observed dependencies are not used" in caplog.text
