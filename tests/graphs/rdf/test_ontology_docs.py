"""The vocabulary, the code and docs/reference/ontology.md name the same terms, and the queries of the docs answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from rdflib import DCTERMS, OWL, RDF, RDFS, SKOS, Graph, URIRef

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Provenance, Tool
from callsheet.graphs.rdf import CS, RdfFormat, checks, shapes, to_graph, to_rdf, vocabulary
from callsheet.graphs.rdf.catalog_graph import TERMS

DOCS = (Path(__file__).parents[3] / "docs" / "reference" / "ontology.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```sparql\n(.*?)```", DOCS, re.DOTALL)
ANSWERS = [
    [("travel/book_hotel", "city, place"), ("travel/plan_trip", "place")],
    [("maps/find_place", "search"), ("weather/forecast", "observe")],
    [("maps/find_place",), ("units/convert",), ("weather/forecast",)],
    [("travel/plan_trip", "units/convert", "0.9", "miles"), ("travel/plan_trip", "weather/forecast", "0.25", "None")],
]


def tool(name: str, required: tuple[str, ...] = (), **more: Any) -> Tool:
    agent, _, bare = name.partition("/")
    schema = {"properties": {key: {"type": "string"} for key in (*required, "note")}, "required": [*required]}
    return Tool(agent=agent, name=bare, input_schema=schema, **more)


@pytest.fixture(scope="module")
def sample() -> Catalog:
    def proposed(needed: str, confidence: float, reason: str = "") -> Dependency:
        sure = {"provenance": Provenance.PROPOSED, "confidence": confidence, "reason": reason}
        return Dependency(tool=needed, kind=DependencyKind.TOOL_INDIRECTLY, **sure)

    place = Dependency(tool="maps/find_place", kind=DependencyKind.PARAMETER_DIRECTLY, parameter="place")
    trip = (proposed("weather/forecast", 0.25), proposed("units/convert", 0.9, "miles"))
    harmless, kept = {"readOnlyHint": True}, {"destructiveHint": False}
    tools = {
        "weather": (
            tool("weather/forecast", ("place",), depends_on=(place,), annotations=harmless, capabilities=("observe",)),
        ),
        "units": (tool("units/convert", ("value", "unit"), annotations=kept, capabilities=("calculate",)),),
        "maps": (
            tool(
                "maps/find_place",
                ("name",),
                annotations=harmless,
                capabilities=("search",),
                output_schema={"properties": {"place": {"type": "string"}}},
            ),
        ),
        "travel": (tool("travel/plan_trip", ("place",), depends_on=trip), tool("travel/book_hotel", ("city", "place"))),
    }
    return Catalog(agents=tuple(Agent(id=agent, tools=held) for agent, held in tools.items()))


def sorted_inputs(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """GROUP_CONCAT joins in any order."""
    return [tuple(", ".join(sorted(cell.split(", "))) for cell in row) for row in rows]


@pytest.mark.parametrize(("query", "answer"), list(zip(QUERIES, ANSWERS, strict=True)))
def test_the_queries_of_the_docs_answer_in_rdflib_and_oxigraph(
    query: str, answer: list[tuple[str, ...]], sample: Catalog
) -> None:
    rows: Any = to_graph(sample).query(query)
    assert sorted_inputs([tuple(str(cell) for cell in row) for row in rows]) == answer
    store = pyoxigraph.Store()
    store.load(to_rdf(sample).encode(), format=pyoxigraph.RdfFormat.TURTLE)
    # No name holds the solutions: they may be freed by no other thread than this one.
    found = [tuple(cell.value if cell else "None" for cell in row) for row in store.query(query)]  # type: ignore[union-attr]
    assert sorted_inputs(found) == answer


def test_vocabulary_code_and_docs_name_the_same_terms() -> None:
    graph = Graph().parse(data=vocabulary(), format="turtle")
    namespace = str(CS)
    defined = {str(term).removeprefix(namespace) for term in graph.subjects() if str(term).startswith(namespace)}
    assert defined == set(TERMS)
    assert {term for term in defined if f"`cs:{term}`" not in DOCS} == set()
    assert set(re.findall(r"`cs:(\w+)`", DOCS)) == defined
    assert set(re.findall(r"\bcs:(\w+)", shapes() + "".join(checks().values()))) - {"json"} <= defined


def test_every_term_is_explained() -> None:
    graph = Graph().parse(data=vocabulary(), format="turtle")
    kinds = {OWL.Class, OWL.ObjectProperty, OWL.DatatypeProperty, RDFS.Datatype}
    terms = {term for kind in kinds for term in graph.subjects(RDF.type, kind)}
    assert len(terms) == len(TERMS)
    for term in terms:
        assert graph.value(term, RDFS.label)
        assert str(graph.value(term, RDFS.comment)).endswith(".")


def test_an_export_uses_the_terms_as_the_vocabulary_says(sample: Catalog) -> None:
    said = Graph().parse(data=vocabulary(), format="turtle")
    graph = to_graph(sample)
    for subject, term, value in graph:
        if not str(term).startswith(str(CS)):
            assert str(term).startswith((str(DCTERMS), str(RDFS), str(SKOS), str(RDF)))
            continue
        for node, side in ((subject, RDFS.domain), (value, RDFS.range)):
            kind = said.value(term, side)
            if isinstance(kind, URIRef) and kind in set(said.subjects(RDF.type, OWL.Class)):
                parents = {kind, *said.subjects(RDFS.subClassOf, kind)}
                assert parents & set(graph.objects(node, RDF.type)), (subject, term, value)


def test_the_docs_name_every_check_and_form() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \|", DOCS, re.MULTILINE)) == set(checks())
    assert all(form.value in DOCS for form in RdfFormat)
