from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from langchain_core.tools import ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from callsheet.graphs import Agent, Catalog, Policy, Tool, agent_from_listing, load
from callsheet.retrievers import AgentGraphRetriever, CatalogTools, MiniLMEmbeddings
from callsheet.retrievers.catalog_tools import tool_line
from callsheet.retrievers.index.indexes import keyword_score
from callsheet.retrievers.selection.budget import SchemaTokens


@pytest.fixture
def tools(catalog: Catalog, minilm: MiniLMEmbeddings) -> CatalogTools:
    return CatalogTools(AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm))


def test_a_keyword_counts_by_how_often_it_comes_and_how_long_it_is() -> None:
    texts = {"mail, mail a letter": 2 * 4 + 1 * 6, "a letter": 1 * 6, "nothing": 0}
    assert {text: keyword_score(["mail", "letter"], text) for text in texts} == texts


def test_search_by_words_lists_ids_and_one_line_each(tools: CatalogTools) -> None:
    assert tools.keyword_search_tools(["PLACE"]).splitlines() == [
        "weather/forecast: Weather forecast for a place.",
        "maps/find_place: Finds the coordinates of a place by its name.",
    ]
    assert tools.keyword_search_tools(["place", "place"], top_k=1).count("\n") == 0
    assert tools.keyword_search_tools(["chocolate", "cake"]).startswith("no tool holds 'chocolate' or 'cake'")


def test_search_by_meaning_brings_what_the_tools_need(tools: CatalogTools) -> None:
    lines = tools.semantic_search_tools("will it be sunny in Rome?", top_k=2).splitlines()
    assert [line.split(":")[0] for line in lines] == ["weather/forecast", "maps/find_place"]


def test_a_tool_that_was_read_is_not_shown_again(tools: CatalogTools) -> None:
    first = json.loads(tools.read_tools(["weather/forecast"]))
    assert first["inputSchema"]["required"] == ["place"]
    assert first["needs"] == [{"id": "maps/find_place"}]
    again = tools.read_tools(["weather/forecast", "maps/find_place"]).splitlines()
    assert json.loads(again[0]) == {"id": "weather/forecast", "read": "before; its schema stands above"}
    assert "inputSchema" in json.loads(again[1])
    assert "inputSchema" in json.loads(tools.read_tools(["weather/forecast"], again=True))


def test_a_walk_goes_from_capabilities_and_agents_to_tools_and_what_they_need(tools: CatalogTools) -> None:
    lines = tools.walk_graph().splitlines()
    able = [line for line in lines if line.startswith("- capability ")]
    assert any(line.startswith("- capability information-transformation (") for line in able)
    assert any(line.startswith("- maps: ") and line.endswith("(1 tool)") for line in lines)
    linked = tools.walk_graph("information-transformation").splitlines()
    assert any(line.startswith("units/convert_length -[has_capability]-> ") for line in linked)
    assert "maps/find_place -[owned_by]-> maps: Finds the coordinates of a place by its name." in tools.walk_graph(
        "maps"
    )
    near = tools.walk_graph("weather/forecast")
    assert "weather/forecast -[tool_directly]-> maps/find_place" in near
    assert "weather/forecast -[has_required_input]-> place" in near


def test_a_walk_is_bounded_and_goes_on(minilm: MiniLMEmbeddings) -> None:
    many = tuple(Tool(agent="a", name=f"t{i}", description="Does " + "x" * 5_000) for i in range(100))
    catalog = Catalog(agents=(Agent(id="a", tools=many),))
    tools = CatalogTools(AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm))
    pages = [tools.walk_graph("a", skip=skip).splitlines() for skip in (0, 40, 80, 120)]
    assert [len(page) for page in pages] == [41, 41, 20, 1]
    assert pages[0][-1] == "and 60 more: skip 40"
    assert pages[3] == ["nothing more"]
    assert max(map(len, pages[0])) < 300


def test_a_walk_stays_within_what_the_user_may_see(catalog: Catalog, minilm: MiniLMEmbeddings) -> None:
    policy = Policy(default="allow", deny=("travel",))
    tools = CatalogTools(AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm, policy=policy))
    assert "travel" not in tools.walk_graph() + tools.walk_graph("weather/forecast") + tools.walk_graph("weather")
    with pytest.raises(ToolException, match="no node 'travel/plan_trip'"):
        tools.walk_graph("travel/plan_trip")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda t: t.keyword_search_tools([" "]), "at least one keyword"),
        (lambda t: t.semantic_search_tools(""), "give a query"),
        (lambda t: t.keyword_search_tools(["x"], top_k=0), "1 to 20, not 0"),
        (lambda t: t.semantic_search_tools("x", top_k=10_000), "1 to 20, not 10000"),
        (lambda t: t.read_tools([]), "1 to 10 ids, not 0"),
        (lambda t: t.read_tools([f"a/{i}" for i in range(11)]), "1 to 10 ids, not 11"),
        (lambda t: t.walk_graph("maps/find_plac"), "did you mean 'maps/find_place'"),
        (lambda t: t.read_tools(["maps/find_plac"]), "did you mean 'maps/find_place'"),
    ],
)
def test_wrong_arguments_are_answered_with_what_to_change(
    tools: CatalogTools, call: Callable[[CatalogTools], str], said: str
) -> None:
    with pytest.raises(ToolException, match=said):
        call(tools)


def test_a_catalog_that_changes_is_followed(minilm: MiniLMEmbeddings) -> None:
    states = [
        Catalog(agents=(Agent(id="a", tools=tuple(Tool(agent="a", name=n, description=says) for n in names)),))
        for says, names in (("Sends it.", ["mail", "post"]), ("Sends all.", ["mail", "wire"]))
    ]
    retriever = AgentGraphRetriever.from_catalog(states[0], index=":memory:", embeddings=minilm)
    tools = CatalogTools(retriever)
    assert tools.keyword_search_tools(["sends"]) == "a/mail: Sends it.\na/post: Sends it."
    tools.read_tools(["a/mail"])
    retriever.follow(load(states[1]))
    assert tools.keyword_search_tools(["sends"]) == "a/mail: Sends all.\na/wire: Sends all."
    assert "Sends all." in tools.read_tools(["a/mail"])


def test_a_line_is_short_and_has_no_hidden_characters() -> None:
    line = tool_line(Tool(agent="a", name="x", description="Does\u202e\nthings " + "very " * 100))
    assert "\u202e" not in line
    assert "\n" not in line
    assert len(line) < 180


def test_the_interfaces_are_available_as_langchain_tools(tools: CatalogTools) -> None:
    search, _, read, walk = tools.as_tools()
    assert "no node 'x'" in walk.invoke({"node": "x"})
    assert "weather" in walk.invoke({})
    assert search.invoke({"keywords": ["hotel"]}) == "travel/book_hotel: Books a room in a hotel."
    assert "city" in read.invoke({"ids": ["travel/book_hotel"]})
    forms = [convert_to_openai_tool(tool)["function"] for tool in tools.as_tools()]
    listing = [{"inputSchema": form.pop("parameters"), **form} for form in forms]
    agent, _ = agent_from_listing("callsheet", listing)
    assert SchemaTokens(Catalog(agents=(agent,))).count(tool.id for tool in agent.tools) < 1000
