"""Dependencies that nobody stands for yet: used only as far as a setting says, and never as a requirement."""

from __future__ import annotations

import pytest

from callsheet.graphs import (
    Agent,
    Catalog,
    Dependency,
    DependencyKind,
    KnowledgeGraph,
    Provenance,
    Tool,
    knowledge_graph,
    required_paths,
    strongest,
    walk,
)

WEIGHTS = dict.fromkeys(DependencyKind, 0.8)


def edge(tool: str, provenance: Provenance, confidence: float = 1.0) -> Dependency:
    return Dependency(
        tool=tool, kind=DependencyKind.TOOL_DIRECTLY, provenance=provenance, confidence=confidence, count=1
    )


@pytest.fixture
def graph() -> KnowledgeGraph:
    needs = (
        edge("a/declared", Provenance.DECLARED, 0.1),
        edge("a/proposed", Provenance.PROPOSED, 0.5),
        edge("a/reviewed", Provenance.REVIEWED, 0.2),
        edge("a/observed", Provenance.OBSERVED, 0.9),
    )
    names = ("declared", "proposed", "reviewed", "observed")
    tools = (Tool(agent="a", name="start", depends_on=needs), *(Tool(agent="a", name=name) for name in names))
    return knowledge_graph(Catalog(agents=(Agent(id="a", tools=tools),)))


def test_only_what_a_person_stands_for_is_required_or_walked_along(graph: KnowledgeGraph) -> None:
    assert set(required_paths(graph, "a/start")) == {"a/declared", "a/reviewed"}
    assert [reached.tool for reached in walk(graph, "a/start")] == ["a/declared", "a/reviewed"]
    assert len(walk(graph, "a/start", proposed=True)) == 4


def test_confidence_and_setting_multiply_the_weight_of_what_nobody_stands_for(graph: KnowledgeGraph) -> None:
    found = {reached.tool: weight for reached, weight in strongest(graph, "a/start", WEIGHTS, listing=0.5)}
    assert found == {"a/declared": 0.8, "a/reviewed": 0.8 * 0.5}, "the others do not even count as listed before"
    weighed = strongest(graph, "a/start", WEIGHTS, listing=1.0, proposed=0.5)
    with_them = {reached.tool: (weight, reached.direct) for reached, weight in weighed}
    assert with_them["a/proposed"] == (pytest.approx(0.8 * 0.5 * 0.5**2), False)
    assert with_them["a/observed"] == (pytest.approx(0.8 * 0.5 * 0.9**2), False)
    assert with_them["a/declared"] == (0.8, True), "confidence is no matter where a person stands for it"


def test_two_edges_to_one_tool_are_one_place_in_the_list() -> None:
    first = edge("a/x", Provenance.DECLARED)
    again = first.model_copy(update={"kind": DependencyKind.PARAMETER_DIRECTLY, "parameter": "p"})
    tools = (
        Tool(agent="a", name="start", depends_on=(first, again, edge("a/y", Provenance.DECLARED))),
        Tool(agent="a", name="x"),
        Tool(agent="a", name="y"),
    )
    found = strongest(knowledge_graph(Catalog(agents=(Agent(id="a", tools=tools),))), "a/start", WEIGHTS, listing=0.5)
    assert {reached.tool: weight for reached, weight in found} == {"a/x": 0.8, "a/y": 0.4}


def test_one_source_of_an_argument_is_enough_and_an_optional_argument_counts_half() -> None:
    kinds = (DependencyKind.PARAMETER_DIRECTLY, DependencyKind.PARAMETER_INDIRECTLY)
    required_arg, other, optional = (
        edge(f"a/{name}", Provenance.PROPOSED, 0.9).model_copy(update={"kind": kind, "parameter": parameter})
        for name, kind, parameter in (("x", kinds[0], "p"), ("y", kinds[1], "p"), ("z", kinds[1], "q"))
    )
    tools = (
        Tool(agent="a", name="start", depends_on=(required_arg, other, optional)),
        *(Tool(agent="a", name=name) for name in "xyz"),
    )
    found = strongest(knowledge_graph(Catalog(agents=(Agent(id="a", tools=tools),))), "a/start", WEIGHTS, proposed=1.0)
    assert {reached.tool: weight for reached, weight in found} == pytest.approx(
        {
            "a/x": 0.8 * 0.9**2,
            "a/y": 0.8 * 0.9**2 * 0.5 * (1 - 0.9),  # used only if x is not
            "a/z": 0.8 * 0.9**2 * 0.5,
        }
    )
