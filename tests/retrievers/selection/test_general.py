"""Tools that serve any subject, where no tool is about a request."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from callsheet.graphs import Agent, Capability, Catalog, Taxonomy, Tool
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings, explain_tool
from known import Known

OPEN = "Which king of Norway was crowned in 1206?"
ABOUT = {
    "weather": ("get_forecast", "The weather forecast of a city."),
    "stocks": ("get_price", "The price of a stock at a date."),
    "calendar": ("list_events", "The events of a calendar on a day."),
    "music": ("play_song", "Plays a song of an artist."),
    "shop": ("list_orders", "The orders of a customer."),
    "search": ("web_search", "Searches the web and returns pages with their titles and addresses."),
}


@pytest.fixture(scope="module")
def retriever(minilm: MiniLMEmbeddings) -> AgentGraphRetriever:
    agents = (
        Agent(id=agent, description=text, tools=(Tool(agent=agent, name=name, description=text),))
        for agent, (name, text) in ABOUT.items()
    )
    return AgentGraphRetriever.from_catalog(Catalog(agents=tuple(agents)), index=":memory:", embeddings=minilm)


def test_where_no_tool_is_about_the_request_a_search_of_the_web_is_found_and_the_trace_says_so(
    retriever: AgentGraphRetriever,
) -> None:
    with_it, without = (retriever.select(OPEN, agents=3, general=general, fits=0.5) for general in (0.45, 0))
    assert "search/web_search" in [tool.id for tool in with_it.tools]
    assert len(with_it.agents) == len(without.agents) == 3
    assert "serves any subject" in explain_tool("search/web_search", with_it)
    assert (with_it.verdict, without.verdict) == ("unsure", "nothing_fits")
    assert with_it.probability == without.probability < 0.5  # type: ignore[operator]
    assert with_it.trace.verdict.endswith("no tool seems to fit it, but search/web_search serves any subject")


def test_a_general_tool_is_not_added_where_a_specific_one_fits(retriever: AgentGraphRetriever) -> None:
    request = "the weather forecast of a city"
    with_it, without = (retriever.select(request, agents=3, general=general) for general in (0.45, 0))
    assert with_it.tools == without.tools
    assert with_it.tools[0].id == "weather/get_forecast"


def general(name: str, weight: float | None, broader: str | None = None) -> Capability:
    return Capability(
        id=name, name=name, broader=broader, definition=f"{name}.", examples=("fly", "swim"), general=weight
    )


def shares_of(tools: dict[str, dict[str, float]], scores: dict[str, float], *made: Capability) -> dict[str, float]:
    """The shares for a request that asks for ``local`` with .6 and for ``own`` with .9."""
    owned = tuple(Tool(agent="a", name=name) for name in tools)
    catalog = Catalog(agents=(Agent(id="a", tools=owned),))
    confident = {f"a/{name}": found for name, found in tools.items()}
    asked = {"q": {"local": 0.6, "own": 0.9}}
    index = Known(catalog, confident, asked, taxonomy=Taxonomy(capabilities=made))
    rows = {name: index.rows[f"a/{name}"] for name in tools}
    given = np.zeros(len(index.rows), np.float32)
    for name, score in scores.items():
        given[rows[name]] = score
    found = index.general("q", (), given)
    return {name: float(found[row]) for name, row in rows.items()}


def test_of_general_tools_the_surer_one_has_more_than_the_one_with_the_nearest_wording() -> None:
    """A score that is .08 higher counts e ** 1.6 = 5 times, a confidence of .99 in place of .9 counts 11 times."""
    tools = {"surer": {"web": 0.99}, "nearer": {"web": 0.9}}
    shares = shares_of(tools, {"surer": 0.40, "nearer": 0.48}, general("web", 1.0))
    assert shares["surer"] > 0.6 > shares["nearer"]


def test_the_share_of_a_general_tool_by_hand() -> None:
    tools = {"x": {"web": 1.0}, "y": {"web": 1.0}, "z": {"local": 1.0}, "w": {"own": 1.0}}
    kinds = (general("web", 1.0), general("local", 0.0), general("own", None))
    shares = shares_of(tools, {"x": 0.41, "y": 0.40}, *kinds)
    # weights 1 + 0 and 0 + .6, together 1.6; x and y share the first by exp(.01 / .05) : 1
    assert shares["x"] == pytest.approx(1 / 1.6 * exp(0.2) / (1 + exp(0.2)), abs=1e-4)
    assert shares["y"] == pytest.approx(1 / 1.6 / (1 + exp(0.2)), abs=1e-4)
    assert shares["z"] == pytest.approx(0.6 / 1.6, abs=1e-4)
    assert shares["w"] == 0


def test_a_tool_with_a_capability_of_another_branch_is_general_only_as_far_as_it_has_not() -> None:
    """.9 * (1 - .3) = .63 is general, .9 * (1 - .6) = .36 is not; one of the same branch does not count."""
    branches = (general("read", None), general("change", None))
    leaves = (general("web", 1.0, "read"), general("own", None, "read"), general("delete", None, "change"))
    tools = {"reads": {"web": 0.9, "own": 0.8}, "writes": {"web": 0.9, "delete": 0.3}}
    deletes = {"deletes": {"web": 0.9, "delete": 0.6}}
    shares = shares_of(tools | deletes, {}, *branches, *leaves)
    odds = {"reads": 0.9 / 0.1, "writes": 0.63 / 0.37}
    assert shares["deletes"] == 0
    for name, value in odds.items():
        assert shares[name] == pytest.approx(value / sum(odds.values()), abs=1e-4)


def test_a_taxonomy_that_marks_no_general_capability_uses_those_of_the_detailed_one(
    retriever: AgentGraphRetriever,
) -> None:
    index = retriever.selector.capabilities
    assert not [entry.id for entry in index.taxonomy.capabilities if entry.general is not None]
    share = index.general(OPEN, (), np.zeros(len(index.rows), np.float32))
    assert np.flatnonzero(share).tolist() == [index.rows["search/web_search"]]
