"""GraphML and Cypher hold the whole knowledge graph, and other programs read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ladybug
import networkx as nx
import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import Agent, Capability, Catalog, Dependency, DependencyKind, Tool, knowledge_graph
from callsheet.graphs.export import cypher_schema, to_cypher, to_graphml
from fuzzing import fuzzed

TABLES = [
    Capability(id="find", name="find", definition="Find things.", examples=("a", "b")),
    Capability(id="search", name="search", definition="Search.", examples=("a", "b"), broader="find"),
    Capability(id="unused", name="unused", definition="Nothing.", examples=("a", "b")),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[ladybug.Connection]:
    """An embedded engine with our tables and nothing in them."""
    with ladybug.Database(":memory:", max_db_size=2**30) as database, ladybug.Connection(database) as connection:
        run(connection, cypher_schema())
        yield connection


def run(connection: ladybug.Connection, script: str) -> None:
    for statement in script.split("\n"):
        if statement:
            connection.execute(statement)


def load_into(connection: ladybug.Connection, script: str) -> ladybug.Connection:
    run(connection, f"MATCH (n) DETACH DELETE n\n{script}")
    return connection


def rows(connection: ladybug.Connection, query: str) -> list[Any]:
    result = connection.execute(query)
    assert isinstance(result, ladybug.QueryResult)
    return result.get_all()


def stores() -> Catalog:
    unit = {"type": "string", "description": "Unit", "enum": ["C", "F"], "default": "C"}
    place = {"type": "string", "description": "Where"}
    both = {"properties": {"unit": unit, "place": place}, "required": ["place"]}
    one = {"properties": {"place": place}}
    needs = Dependency(
        tool="weather/place", kind=DependencyKind.PARAMETER_DIRECTLY, parameter="place", reason="it's so"
    )
    tools = (
        Tool(agent="weather", name="forecast", input_schema=both, depends_on=(needs, needs), capabilities=("search",)),
        Tool(agent="weather", name="place", input_schema=one, output_schema=one, capabilities=("search", "other")),
    )
    return Catalog(agents=(Agent(id="weather", tools=tools), Agent(id="empty")))


def test_parameters_that_mean_the_same_are_one_node_and_required_is_an_edge() -> None:
    graph = knowledge_graph(stores(), TABLES)
    kinds = sorted(str(kind) for _, kind in graph.nodes(data="kind"))
    assert kinds == ["agent"] * 2 + ["capability"] * 3 + ["output"] + ["parameter"] * 2 + ["tool"] * 2
    edges = sorted((source.partition("/")[2], kind) for source, _, kind in graph.edges(data="kind"))
    assert edges == [
        ("search", "broader"),
        ("weather.forecast", "has_capability"),
        ("weather.forecast", "has_optional_input"),
        ("weather.forecast", "has_required_input"),
        ("weather.forecast", "hosted_on"),
        ("weather.forecast", "parameter_directly"),
        ("weather.forecast", "parameter_directly"),
        ("weather.place", "has_capability"),
        ("weather.place", "has_capability"),
        ("weather.place", "has_optional_input"),
        ("weather.place", "has_output"),
        ("weather.place", "hosted_on"),
    ]


def test_a_parameter_of_another_meaning_is_another_node() -> None:
    def of(**spec: object) -> str:
        tool = Tool(agent="a", name="t", input_schema={"properties": {"q": spec}})
        graph = knowledge_graph(Catalog(agents=(Agent(id="a", tools=(tool,)),)))
        return next(node for node, kind in graph.nodes(data="kind") if kind == "parameter")

    specs: list[dict[str, Any]] = [{}, {"type": "string"}, {"description": "x"}, {"enum": [1]}, {"enum": [True]}]
    specs += [{"format": "uri"}, {"default": 0}, {"default": False}, {"default": "0"}]
    assert len({of(**spec) for spec in specs}) == len(specs)
    assert of(type="string", description="x") == of(description="x", type="string")


def test_an_embedded_engine_takes_the_cypher_script_once_or_twice(engine: ladybug.Connection) -> None:
    script = to_cypher(stores(), TABLES)
    connection = load_into(engine, script + script)
    labels = dict(rows(connection, "MATCH (n) RETURN label(n), count(*)"))
    assert labels == {"Agent": 2, "Tool": 2, "Parameter": 2, "Output": 1, "Capability": 3}
    kinds = dict(rows(connection, "MATCH ()-[r]->() RETURN label(r), count(*)"))
    assert kinds["PARAMETER_DIRECTLY_DEPENDS_ON"] == 2
    assert sum(kinds.values()) == 12
    found = rows(
        connection,
        "MATCH (t:Tool)-[:HAS_REQUIRED_INPUT]->(p:Parameter)<-[:HAS_OPTIONAL_INPUT]-(o:Tool)-[:HOSTED_ON]->(a:Agent) "
        "RETURN t.id, p.name, o.id, a.id",
    )
    assert found == [["weather/forecast", "place", "weather/place", "weather"]]
    wide = "MATCH (t:Tool)-[:HAS_CAPABILITY]->(:Capability)-[:BROADER*0..3]->(c:Capability {id: 'find'}) RETURN t.name"
    assert sorted(rows(connection, wide)) == [["forecast"], ["place"]]
    reasons = rows(connection, "MATCH (:Tool)-[r:PARAMETER_DIRECTLY_DEPENDS_ON]->() RETURN r.reason, r.confidence")
    assert reasons == [["it's so", 1.0], ["it's so", 1.0]]


@fuzzed(5)
@given(data=st.data())
def test_every_text_survives_cypher(data: st.DataObject, strategies: Any, engine: ladybug.Connection) -> None:
    catalog = data.draw(strategies.catalogs())
    connection = load_into(engine, to_cypher(catalog))
    tools = rows(connection, "MATCH (t:Tool) RETURN t.id, t.title, t.description, t.core")
    expected = [[tool.id, tool.title, tool.description, tool.core] for tool in catalog.tools.values()]
    assert sorted(tools) == sorted(expected)
    owned = rows(connection, "MATCH (t:Tool)-[:HOSTED_ON]->(a:Agent) RETURN t.id, a.id")
    assert sorted(owned) == sorted([tool.id, tool.agent] for tool in catalog.tools.values())
    count = rows(connection, "MATCH (:Tool)-[r]->(:Tool) RETURN count(*)")
    assert count == [[sum(len(tool.depends_on) for tool in catalog.tools.values())]]


@fuzzed(5)
@given(data=st.data())
def test_networkx_reads_the_graphml_back(data: st.DataObject, strategies: Any) -> None:
    catalog = data.draw(strategies.catalogs())
    graph = knowledge_graph(catalog)
    read = nx.parse_graphml(to_graphml(catalog))
    assert set(read.nodes) == set(graph.nodes)
    assert read.number_of_edges() == graph.number_of_edges()


def test_graphml_keeps_what_xml_can_hold() -> None:
    tool = Tool(agent="a<b", name="t", description='x & "y" \x00\ud800\n工具')
    read = nx.parse_graphml(to_graphml(Catalog(agents=(Agent(id="a<b", tools=(tool,)),))))
    node = read.nodes["tool/a%3Cb.t"]
    assert (node["id"], node["description"], node["core"]) == ("a<b/t", 'x & "y" \ufffd?\n工具', False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("source", ["fleet/manifests", "benchmarks/livemcpbench/tools.json"])
def test_public_catalogs_are_written_whole(source: str, shared: Any) -> None:
    from callsheet.graphs import load

    catalog = load(shared / source).catalog
    graph = knowledge_graph(catalog)
    read = nx.parse_graphml(to_graphml(catalog))
    assert (read.number_of_nodes(), read.number_of_edges()) == (graph.number_of_nodes(), graph.number_of_edges())
    assert len(to_cypher(catalog).splitlines()) == graph.number_of_nodes() + graph.number_of_edges()
