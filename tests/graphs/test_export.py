"""GraphML and Cypher hold the whole knowledge graph; in a Mermaid chart, no name breaks out of its label."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import ladybug
import networkx as nx
import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import (
    Agent,
    Capability,
    Catalog,
    Dependency,
    DependencyKind,
    SettingsError,
    Tool,
    detailed_graph,
)
from callsheet.graphs.export import edges_to_mermaid, node_key, to_cypher, to_graphml, to_mermaid
from fuzzing import fuzzed

TABLES = [
    Capability(id="find", name="find", definition="Find things.", examples=("a", "b")),
    Capability(id="search", name="search", definition="Search.", examples=("a", "b"), broader="find"),
    Capability(id="unused", name="unused", definition="Nothing.", examples=("a", "b")),
]


NODES = {
    "Agent": "id name description instructions category system",
    "Tool": "id name title description input_schema output_schema annotations",
    "Skill": "id name description text",
    "Capability": "id name definition",
    "Parameter": "name type description format enum default",
    "Output": "name type description format enum default",
}
EDGES = {
    "OWNED_BY": "FROM Tool TO Agent",
    "USES": "FROM Skill TO Tool",
    "HAS_REQUIRED_INPUT": "FROM Tool TO Parameter",
    "HAS_OPTIONAL_INPUT": "FROM Tool TO Parameter",
    "HAS_OUTPUT": "FROM Tool TO Output",
    "HAS_CAPABILITY": "FROM Tool TO Capability",
    "PARENT": "FROM Capability TO Capability",
    **{
        f"{kind.upper()}_DEPENDS_ON": "FROM Tool TO Tool, position INT64, parameter STRING, reason STRING, "
        "provenance STRING, confidence DOUBLE, count INT64"
        for kind in DependencyKind
    },
}


def schema() -> str:
    """The tables that Ladybug needs; Neo4j needs none."""
    fields = {label: ", ".join(f"`{name}` STRING" for name in names.split()) for label, names in NODES.items()}
    fields["Tool"] += ", core BOOLEAN, always BOOLEAN"
    nodes = [f"CREATE NODE TABLE {label}(key STRING PRIMARY KEY, {text})" for label, text in fields.items()]
    return "\n".join([*nodes, *(f"CREATE REL TABLE {name}({text})" for name, text in EDGES.items())])


@pytest.fixture(scope="module")
def engine() -> Iterator[ladybug.Connection]:
    """An embedded engine with our tables and nothing in them."""
    with ladybug.Database(":memory:", max_db_size=2**30) as database, ladybug.Connection(database) as connection:
        run(connection, schema())
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


def test_parameters_of_one_name_with_other_meanings_are_separate_nodes() -> None:
    def of(**spec: object) -> Any:
        tool = Tool(agent="a", name="t", input_schema={"properties": {"q": spec}})
        graph = detailed_graph(Catalog(agents=(Agent(id="a", tools=(tool,)),)))
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
        "MATCH (t:Tool)-[:HAS_REQUIRED_INPUT]->(p:Parameter)<-[:HAS_OPTIONAL_INPUT]-(o:Tool)-[:OWNED_BY]->(a:Agent) "
        "RETURN t.id, p.name, o.id, a.id",
    )
    assert found == [["weather/forecast", "place", "weather/place", "weather"]]
    wide = "MATCH (t:Tool)-[:HAS_CAPABILITY]->(:Capability)-[:PARENT*0..3]->(c:Capability {id: 'find'}) RETURN t.name"
    assert sorted(rows(connection, wide)) == [["forecast"], ["place"]]
    reasons = rows(connection, "MATCH (:Tool)-[r:PARAMETER_DIRECTLY_DEPENDS_ON]->() RETURN r.reason, r.confidence")
    assert reasons == [["it's so", 1.0], ["it's so", 1.0]]


@fuzzed(5)
@given(data=st.data())
def test_every_text_survives_cypher(
    data: st.DataObject, strategies: SimpleNamespace, engine: ladybug.Connection
) -> None:
    catalog = data.draw(strategies.catalogs())
    connection = load_into(engine, to_cypher(catalog))
    tools = rows(connection, "MATCH (t:Tool) RETURN t.id, t.title, t.description, t.core")
    expected = [[tool.id, tool.title, tool.description, tool.core] for tool in catalog.tools.values()]
    assert sorted(tools) == sorted(expected)
    owned = rows(connection, "MATCH (t:Tool)-[:OWNED_BY]->(a:Agent) RETURN t.id, a.id")
    assert sorted(owned) == sorted([tool.id, tool.agent] for tool in catalog.tools.values())
    count = rows(connection, "MATCH (:Tool)-[r]->(:Tool) RETURN count(*)")
    assert count == [[sum(len(tool.depends_on) for tool in catalog.tools.values())]]


@fuzzed(5)
@given(data=st.data())
def test_networkx_reads_the_graphml_back(data: st.DataObject, strategies: SimpleNamespace) -> None:
    catalog = data.draw(strategies.catalogs())
    graph = detailed_graph(catalog)
    read = nx.parse_graphml(to_graphml(catalog))
    assert set(read.nodes) == {node_key(graph, node) for node in graph}
    assert read.number_of_edges() == graph.number_of_edges()


def test_graphml_keeps_what_xml_can_hold() -> None:
    tool = Tool(agent="a<b", name="t", description='x & "y" \x00\ud800\n工具')
    read = nx.parse_graphml(to_graphml(Catalog(agents=(Agent(id="a<b", tools=(tool,)),))))
    node = read.nodes["tool/a%3Cb.t"]
    assert (node["id"], node["description"], node["core"]) == ("a<b/t", 'x & "y" \ufffd?\n工具', False)


LABEL = r'"(?:[^"#`<>&|\\\n]|#\d+;)+"'
ARROWS = r"(?:-->|-\.->|==>|--o)"
LINES = re.compile(
    rf"flowchart LR|  n\d+(?:\[{LABEL}\]|\[\[{LABEL}\]\]):::(?:tool|core|start|agent)|  n\d+ {ARROWS}\|{LABEL}\| n\d+"
    rf'|  more\["and \d+ more tools"\]|  classDef [a-z]+ [a-z0-9:#,-]+'
)


def chain(count: int, *, back: bool = False) -> Catalog:
    """One agent a tool; each tool needs the next one, and the last the first if ``back``."""

    def needs(number: int) -> tuple[Dependency, ...]:
        after = (number + 1) % count if back else number + 1
        return (Dependency(tool=f"a{after}/t", kind=DependencyKind.TOOL_DIRECTLY),) if after < count else ()

    tools = [Tool(agent=f"a{number}", name="t", depends_on=needs(number)) for number in range(count)]
    return Catalog(agents=tuple(Agent(id=tool.agent, tools=(tool,)) for tool in tools))


def owners(chart: str) -> list[str]:
    return sorted(re.findall(r'\[\["(.*)"\]\]', chart))


def test_a_small_catalog_is_drawn_completely(catalog: Catalog) -> None:
    lines = [line.strip() for line in to_mermaid(catalog).splitlines() if "classDef" not in line]
    assert lines[:3] == ["flowchart LR", 'n0["weather/forecast"]:::tool', 'n1[["weather"]]:::agent']
    assert {'n0 -->|"owned by"| n1', 'n0 -->|"tool directly"| n2'} <= set(lines)
    assert sum("owned by" in line for line in lines) == len(catalog.tools)
    assert sum("-.->" in line for line in lines) == 1


def test_every_kind_of_node_has_a_shape_and_colours(catalog: Catalog) -> None:
    """Figure 3 of the tool knowledge graph paper: server, tool, capability, parameter."""
    graph = detailed_graph(catalog, TABLES)
    chart = edges_to_mermaid(graph, list(graph.edges(data=True)))
    used = set(re.findall(r":::(\w+)$", chart, re.MULTILINE))
    assert {"agent", "tool", "parameter"} <= used
    assert used <= set(re.findall(r"classDef (\w+) ", chart))


def test_a_dependency_cycle_is_drawn_once() -> None:
    cycle = to_mermaid(chain(5, back=True))
    assert len(owners(cycle)) == cycle.count("tool directly") == 5


def test_line_styles_show_the_kind_of_dependency() -> None:
    edges = tuple(
        Dependency(tool="a/b", kind=kind, parameter=f"p_{number}") for number, kind in enumerate(DependencyKind)
    )
    tools = (Tool(agent="a", name="t", depends_on=edges), Tool(agent="a", name="b"))
    chart = to_mermaid(Catalog(agents=(Agent(id="a", tools=tools),)))
    drawn = [line.split("|")[:2] for line in chart.splitlines() if "p_" in line]
    kinds = ("tool directly", "tool indirectly", "parameter directly", "parameter indirectly")
    arrows = zip(("-->", "-.->", "==>", "--o"), kinds, strict=True)
    assert sorted(drawn) == sorted([f"  n0 {arrow}", f'"{kind}, p_{i}"'] for i, (arrow, kind) in enumerate(arrows))


@fuzzed(8)
@given(data=st.data())
def test_no_name_ends_its_label_early(data: st.DataObject, strategies: SimpleNamespace) -> None:
    catalog = data.draw(strategies.catalogs())
    chart = to_mermaid(catalog)
    assert [line for line in chart.removesuffix("\n").split("\n") if not LINES.fullmatch(line)] == []
    assert len(owners(chart)) == sum(bool(agent.tools) for agent in catalog.agents)


def test_long_names_are_cut_and_hidden_characters_shown() -> None:
    tools = (Tool(agent="a", name="x" * 5_000_000), Tool(agent="a", name="a\u202eb\x00"))
    chart = to_mermaid(Catalog(agents=(Agent(id="a", tools=tools),)))
    assert f'"a/{"x" * 57}…"' in chart
    assert '"a/a#92;u202eb#92;x00"' in chart


def test_a_large_catalog_is_refused() -> None:
    with pytest.raises(SettingsError, match="61 tools are more than a Mermaid chart can show"):
        to_mermaid(chain(61))
