"""Tools that serve any subject, where no tool is about a request."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from callsheet.graphs import Agent, Capability, Catalog, Taxonomy, Tool
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings, explain_tool, nodes_of
from callsheet.retrievers.capabilities import CapabilityIndex
from known import WordVectors
from scripted import Scripted

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


def test_of_general_tools_the_surer_one_has_more_than_the_one_with_the_nearest_wording() -> None:
    """A score that is .08 higher counts e ** 1.6 = 5 times, a confidence of .99 in place of .9 counts 11 times."""
    tools = tuple(Tool(agent="a", name=name) for name in ("surer", "nearer"))
    catalog = Catalog(agents=(Agent(id="a", tools=tools),))
    web = Capability(id="web", name="web", definition="fly.", examples=("fly", "swim"), general=1.0)
    nodes = nodes_of(catalog)
    index = CapabilityIndex(
        catalog,
        Scripted(nodes, {}, {}),
        [node.id for node in nodes],
        Taxonomy(capabilities=(web,)),
        embeddings=WordVectors("fly", "swim"),
    )
    index.of_tools = np.array([[0.0], [0.99], [0.9]], np.float32)
    share = index.general(np.zeros(1, np.float32), np.array([0.0, 0.40, 0.48], np.float32))
    assert share[1] > 0.6 > share[2]


def test_the_share_of_a_general_tool_by_hand() -> None:
    tools = tuple(Tool(agent="a", name=name, capabilities=("web",)) for name in ("x", "y"))
    local = Tool(agent="a", name="z", capabilities=("local",))
    catalog = Catalog(agents=(Agent(id="a", tools=(*tools, local, Tool(agent="a", name="w", capabilities=("own",)))),))
    kinds = (("web", 1.0), ("local", 0.0), ("own", None))
    taxonomy = Taxonomy(
        capabilities=tuple(
            Capability(id=name, name=name, definition=f"{name}.", examples=("fly", "swim"), general=general)
            for name, general in kinds
        )
    )
    nodes = nodes_of(catalog)
    index = CapabilityIndex(
        catalog, Scripted(nodes, {}, {}), [n.id for n in nodes], taxonomy, embeddings=WordVectors("fly", "swim")
    )
    row = {node.id: place for place, node in enumerate(nodes)}
    scores = np.zeros(len(nodes), np.float32)
    scores[row["a/x"]], scores[row["a/y"]] = 0.41, 0.40
    share = index.general(np.array([0.0, 0.6, 0.9], np.float32), scores)
    # weights 1 + 0 and 0 + .6, together 1.6; x and y share the first by exp(.01 / .05) : 1
    assert share[row["a/x"]] == pytest.approx(1 / 1.6 * exp(0.2) / (1 + exp(0.2)), abs=1e-4)
    assert share[row["a/y"]] == pytest.approx(1 / 1.6 / (1 + exp(0.2)), abs=1e-4)
    assert share[row["a/z"]] == pytest.approx(0.6 / 1.6, abs=1e-4)
    assert share[row["a/w"]] == 0
