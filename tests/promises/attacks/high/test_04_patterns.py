"""Texts that a server or a user writes to make a regular expression, or what is built on it, take for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from callsheet.agents import Plan, PlanTask
from callsheet.agents.work.equipment import UnsetModel
from callsheet.graphs import Catalog, RequestError, load
from callsheet.graphs.catalog.formats.manifests import agent_from_listing
from callsheet.graphs.errors import near_names
from callsheet.graphs.text.arguments import bounded
from callsheet.graphs.text.unicode import normalized
from callsheet.orchestrator import Settings, create_supervisor
from callsheet.retrievers import AgentGraphRetriever, units_of
from fleet import Fleet, definition
from pumps import SUPERLINEAR, Found, all_patterns, growth

SHARES = 4
"""Parts of the patterns, for several processes of tests."""


@cache
def patterns() -> list[Found]:
    return sorted(all_patterns(), key=lambda item: (item.where, item.pattern.pattern))


def test_the_patterns_of_the_product_are_found() -> None:
    assert len(patterns()) > 80
    assert "callsheet.graphs.text.hidden._HIDDEN" in {item.where for item in patterns()}


@pytest.mark.parametrize("share", range(SHARES))
def test_time_grows_no_faster_than_the_worst_text(share: int) -> None:
    slow = []
    for item in patterns()[share::SHARES]:
        ratio, text = growth(item)
        if ratio >= SUPERLINEAR:
            slow.append(f"{item.where}: {item.pattern.pattern[:200]!r} over {text!r}")
    assert slow == []


def times(act: Callable[[str], Any], short: str, long: str) -> float:
    """How often longer it takes for the long text; the best of three."""

    def seconds(text: str) -> float:
        began = time.thread_time()
        act(text)
        return time.thread_time() - began

    return min(seconds(long) / max(seconds(short), 1e-4) for _ in range(3))


@pytest.mark.parametrize("pile", ["\u0327", "\u0301\u0327", "\u0344"])
def test_marks_that_pile_up_on_a_character_are_not_sorted(pile: str) -> None:
    assert times(lambda text: normalized("NFKC", text), f"e{pile * 4_000}", f"e{pile * 32_000}") < 24
    assert normalized("NFC", "e\u0301") == "é"


def test_a_server_with_a_pile_of_marks_in_a_text_is_listed_as_any_other(fleet: Fleet) -> None:
    fleet.serve("weather", definition("forecast"))
    load(fleet.config, yes=True)
    fleet.serve("weather", definition("forecast"), definition("more", "a" + "\u0301" * 8_000 + "\u0327" * 8_000))
    assert [change.tool for change in load(fleet.config, yes=True).changes] == ["more"]


@pytest.mark.parametrize("blank", [" ", "\t", "\u2003", "\n", " \n"])
async def test_blanks_without_end_are_collapsed_at_the_entry(
    blank: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def plan(task: PlanTask, **_: Any) -> Plan:
        seen.append(task.request)
        return Plan(answer="done")

    monkeypatch.setattr("callsheet.agents.no_model.no_model._plan", plan)
    app = create_supervisor(catalog, settings=Settings(approval="never")).compile()
    await app.ainvoke({"messages": [HumanMessage(f"mail{blank * 4_000}Ann")]})
    assert len(seen[0]) < 20
    assert bounded("a" + " " * 32 + "b", 100, "x") == "a" + " " * 32 + "b"


async def test_the_length_of_a_request_is_bounded(catalog: Catalog) -> None:
    app = create_supervisor(catalog, model=UnsetModel()).compile()
    state = await app.ainvoke({"messages": [HumanMessage("x" * 32_001)]})
    assert "this has 32,001 characters, the maximum is 32,000: " in state["messages"][-1].text
    assert "max_request" in state["messages"][-1].text
    assert Settings(max_request=40_000).max_request == 40_000


def test_the_length_of_a_query_is_bounded(catalog: Catalog) -> None:
    retriever = AgentGraphRetriever.from_catalog(catalog)
    with pytest.raises(RequestError, match="max_query"):
        retriever.select("x " * 60_000)
    assert retriever.select("forecast", max_query=8).tools
    with pytest.raises(RequestError, match="the maximum is 7"):
        retriever.select("forecast", max_query=7)


def test_a_query_of_blanks_is_cut_in_linear_time() -> None:
    assert times(units_of, "mail" + " and" * 400, "mail" + " " * 1_600 + "x") < 8


def test_the_length_of_a_name_is_bounded(fleet: Fleet) -> None:
    fleet.serve("notes", definition("a" * 1_024), definition("aB" * 513))
    loaded = load(fleet.config, yes=True)
    assert set(loaded.catalog.tools) == {f"notes/{'a' * 1_024}"}
    assert "entry 2 of the tools is not an object with a name of 1,024 characters at most" in str(loaded.problems[0])


def test_a_server_may_name_what_does_not_exist_as_often_as_it_likes(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look for near names takes quadratic time in a name, for each of all names."""
    assert near_names("forecasts", ["forecast"]) == " (did you mean 'forecast'?)"
    assert near_names("x" * 201, ["x" * 200]) == near_names("x" * 199, ["x" * 201]) == ""
    monkeypatch.setattr("callsheet.graphs.errors.get_close_matches", None)
    needed = [{"tool": f"list_note{number}", "kind": "tool_directly"} for number in range(1_001)]
    more: dict[str, Any] = {"_meta": {"callsheet/depends_on": needed[:1_000]}}
    fleet.serve("notes", definition("add_note", **more), definition("list_note"))
    loaded = load(fleet.config, yes=True)
    assert len(loaded.catalog.tools) == 2
    assert len(loaded.problems) == 1_000
    (problem,) = agent_from_listing("notes", [definition("x", _meta={"callsheet/depends_on": needed})])[1]
    assert "callsheet/depends_on: Tuple should have at most 1000 items" in problem.message
