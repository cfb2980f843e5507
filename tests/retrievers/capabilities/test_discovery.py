"""Capabilities in the ranking, the cut, and a discovery from its query to its candidates."""

from __future__ import annotations

from math import exp

import pytest

from callsheet.graphs import Catalog, Policy, SettingsError
from callsheet.graphs.capabilities.taxonomy import shipped_taxonomy
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings, SelectSettings
from callsheet.retrievers.discovery import discover
from known import Known, knowing_selector
from scripted import catalog_of, selector

CATALOG = catalog_of(a_x="", a_y="", b_z="")
SCORES = {"a/x": 0.50, "a/y": 0.45, "b/z": 0.45}


def known(tools: dict[str, dict[str, float]], asked: dict[str, float], catalog: Catalog = CATALOG) -> Known:
    return Known(catalog, tools, {"q": asked}, "fly", "swim")


def test_a_capability_that_is_surely_asked_for_raises_its_tools_and_their_agents() -> None:
    made = knowing_selector(CATALOG, SCORES, known({"b/z": {"fly": 1.0}}, {"fly": 1.0}))
    assert next(tool.id for tool in made.select("q").tools) == "a/x"
    raised = made.select("q", capability_weight=0.1)
    assert next(tool.id for tool in raised.tools) == "b/z"
    assert next(agent.id for agent in raised.agents) == "b"
    before, after = (
        {n.id: n.score for n in s.trace.nodes}
        for s in (made.select("q", context=0), made.select("q", context=0, capability_weight=0.1))
    )
    assert after["b/z"] - before["b/z"] == pytest.approx(0.1, abs=1e-6)
    assert after["a/x"] == before["a/x"]
    unsure = knowing_selector(CATALOG, SCORES, known({"b/z": {"fly": 1.0}}, {"fly": 0.89}))
    assert next(tool.id for tool in unsure.select("q", capability_weight=0.1).tools) == "a/x"
    assert next(tool.id for tool in unsure.select("q", capability_weight=0.1, capability_sure=0.8).tools) == "b/z"


def test_the_verdict_does_not_depend_on_capabilities() -> None:
    made = knowing_selector(CATALOG, {"a/x": 0.1}, known({"b/z": {"fly": 1.0}}, {"fly": 1.0}))
    assert made.select("q", capability_weight=1.0).verdict == made.select("q").verdict == "nothing_fits"


def test_the_cut_leaves_out_unlikely_tools_and_says_why() -> None:
    made = selector(CATALOG, {"a/x": 0.9, "a/y": 0.8, "b/z": 0.4})
    uses = {tool.id: tool.use for tool in made.select("q").tools}
    assert uses["a/y"] == pytest.approx(0.9 * exp(-0.1 / 0.04) / (1 + exp(-0.1 / 0.04)), abs=1e-3)
    kept = made.select("q", cut=0.01 * 10**2)
    assert [tool.id for tool in kept.tools] == ["a/x", "a/y"]
    (cut,) = kept.trace.cut
    assert cut.id == "b/z"
    assert "expected use" in cut.reason
    assert "the minimum is 0.01" in cut.reason


def test_a_smaller_budget_cuts_more_and_one_tool_always_stays() -> None:
    made = selector(CATALOG, {"a/x": 0.9, "a/y": 0.8, "b/z": 0.8})
    assert [len(made.select("q", cut=1.0, tools=budget).tools) for budget in (3, 10)] == [1, 3]
    assert [tool.id for tool in made.select("q", cut=1e9).tools] == ["a/x"]


def test_tools_required_by_a_kept_tool_are_never_cut() -> None:
    catalog = catalog_of(a_x="b_z", a_y="")
    made = selector(catalog, {"a/x": 0.9, "a/y": 0.1}, made=SelectSettings(tool_dependency=0.001))
    kept = made.select("q", cut=10.0)
    assert [tool.id for tool in kept.tools] == ["a/x", "b/z"]


def test_a_weak_link_lowers_the_value_of_a_tool_with_a_capability_only() -> None:
    scores = {"a/x": 0.90, "a/y": 0.75, "b/z": 0.75}
    made = knowing_selector(CATALOG, scores, known({"a/x": {"fly": 1.0}, "a/y": {"swim": 1.0}}, {}))
    settings = {"capability_weight": 0.1, "context": 0.0, "cut": 0.01 * 10**2}
    kept = [tool.id for tool in made.select("q", **settings).tools]
    assert kept == ["a/x", "b/z"]
    assert {cut.id for cut in made.select("q", **settings).trace.cut} == {"a/y"}


def test_a_discovery_from_query_to_candidates() -> None:
    tools = {"a/x": {"fly": 0.9}, "a/y": {"swim": 0.9}, "b/z": {"fly": 0.6}}
    made = knowing_selector(CATALOG, {"a/x": 0.9, "a/y": 0.5, "b/z": 0.8}, known(tools, {"fly": 0.95}))
    found = discover(made, "q", budget=2)
    assert found.capabilities == {"fly": 1.0}
    assert found.actions == ("do",)
    assert list(found.sources) == ["a", "b"]
    assert sum(found.sources.values()) == pytest.approx(1.0)
    assert [tool.id for tool in found.candidates] == ["a/x", "b/z"]
    kept, also, left = found.inspected
    assert (kept.id, kept.capabilities, kept.kept, kept.why) == ("a/x", ("fly",), True, "")
    assert kept.link == pytest.approx(0.9)
    assert also.kept
    assert (left.id, left.link, left.kept) == ("a/y", pytest.approx(0.1), False)
    assert left.why
    assert found.to_dict()["actions"] == ("do",)


def test_the_types_of_action_are_the_clusters_of_the_capabilities() -> None:
    likely = {"web-search": 0.95, "database-querying": 0.95, "computation": 0.95}
    papers_own = Known(CATALOG, {"a/x": {"web-search": 1.0}}, {"q": likely}, taxonomy=shipped_taxonomy("default"))
    made = knowing_selector(CATALOG, {"a/x": 0.9}, papers_own)
    found = discover(made, "q")
    assert set(found.capabilities) == set(likely)
    assert set(found.actions) == {"information-access", "data-processing"}


def test_discovery_in_an_empty_catalog_finds_nothing() -> None:
    made = knowing_selector(CATALOG, SCORES, known({}, {}))
    found = discover(made, "  ")
    assert (found.candidates, found.capabilities, found.sources, found.verdict) == ((), {}, {}, "nothing_fits")


def test_impossible_settings_of_discovery_are_refused() -> None:
    with pytest.raises(SettingsError, match="give the Selector a CapabilityIndex"):
        selector(CATALOG, SCORES).select("q", capability_weight=0.1)
    with pytest.raises(SettingsError, match="tools must be a whole number of at least 1"):
        discover(knowing_selector(CATALOG, SCORES, known({}, {})), "q", budget=0)
    for wrong in ({"capability_weight": -1}, {"cut": -0.1}, {"cut": float("nan")}, {"capability_sure": 1.1}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            SelectSettings(**wrong)  # type: ignore[arg-type]


def test_capabilities_are_not_used_by_default(catalog: Catalog, minilm: MiniLMEmbeddings) -> None:
    retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm)
    assert retriever.select("weather in Rome", general=0).trace.capabilities == {}
    assert "of_tools" not in vars(retriever.selector.capabilities)


def test_a_user_discovers_what_that_user_may_see(catalog: Catalog, minilm: MiniLMEmbeddings) -> None:
    retriever = AgentGraphRetriever.from_catalog(
        catalog, index=":memory:", embeddings=minilm, policy=Policy(default="allow", deny=("units/*",))
    )
    found = retriever.discover("convert miles to kilometres")
    assert found.candidates
    assert not [entry.id for entry in found.inspected if entry.id.startswith("units/")]
    assert not [tool for tool in retriever.capabilities().of if tool.startswith("units/")]
