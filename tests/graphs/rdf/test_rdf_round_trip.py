"""A catalog written as RDF is read back unchanged, whatever its names, texts and schemas hold."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyoxigraph
import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import Agent, Catalog, Tool, dump, load
from callsheet.graphs.rdf import RdfFormat, from_rdf, graph_findings, to_graph, to_rdf
from fuzzing import fuzzed

SUFFIXES = {RdfFormat.TURTLE: ".ttl", RdfFormat.JSON_LD: ".jsonld", RdfFormat.N_TRIPLES: ".nt"}
IN_OXIGRAPH = {
    RdfFormat.TURTLE: pyoxigraph.RdfFormat.TURTLE,
    RdfFormat.JSON_LD: pyoxigraph.RdfFormat.JSON_LD,
    RdfFormat.N_TRIPLES: pyoxigraph.RdfFormat.N_TRIPLES,
}
every_form = pytest.mark.parametrize("form", RdfFormat)


def same(read: Catalog, catalog: Catalog) -> bool:
    """Equal, and alike to the last key of a schema."""
    return read == catalog and dump(read) == dump(catalog)


@every_form
@fuzzed(5)
@given(data=st.data())
def test_any_valid_catalog_comes_back_unchanged(
    data: st.DataObject, strategies: SimpleNamespace, form: RdfFormat
) -> None:
    catalog = data.draw(strategies.catalogs())
    assert same(from_rdf(to_rdf(catalog, form=form), form=form), catalog)


@every_form
@fuzzed(5)
@given(data=st.data())
def test_oxigraph_reads_the_same_triples(data: st.DataObject, strategies: SimpleNamespace, form: RdfFormat) -> None:
    catalog = data.draw(strategies.catalogs())
    read = pyoxigraph.parse(to_rdf(catalog, form=form).encode(), format=IN_OXIGRAPH[form])
    ours = pyoxigraph.parse(to_rdf(catalog, form=RdfFormat.N_TRIPLES).encode(), format=IN_OXIGRAPH[RdfFormat.N_TRIPLES])
    found = {(quad.subject, quad.predicate, quad.object) for quad in read}
    assert found == {(quad.subject, quad.predicate, quad.object) for quad in ours}
    assert len(found) == len(to_graph(catalog))


@fuzzed(5)
@given(data=st.data())
def test_exported_rdf_conforms_to_the_shapes_and_checks(data: st.DataObject, strategies: SimpleNamespace) -> None:
    found = graph_findings(to_graph(data.draw(strategies.catalogs())))
    assert {finding.rule for finding in found} <= {"integrity-parameters", "integrity-self", "integrity-defined"}


@every_form
def test_a_file_is_a_kind_of_catalog(form: RdfFormat, catalog: Catalog, tmp_path: Path) -> None:
    place = tmp_path / f"catalog{SUFFIXES[form].upper()}"
    place.write_text(to_rdf(catalog, form=form), encoding="utf-8", newline="")
    loaded = load(place)
    assert same(loaded.catalog, catalog)
    assert not loaded.problems


@pytest.mark.exhaustive
def test_a_public_catalog_comes_back_unchanged(shared: Path) -> None:
    """In one form: that the forms hold the same triples is tested above, and they are slow to read."""
    catalog = load(shared / "fleet" / "manifests").catalog
    assert len(catalog.tools) > 400
    graph, text = to_graph(catalog), to_rdf(catalog)
    assert {finding.rule for finding in graph_findings(graph)} <= {"integrity-parameters"}
    assert same(from_rdf(text), catalog)
    assert sum(1 for _ in pyoxigraph.parse(text.encode(), format=IN_OXIGRAPH[RdfFormat.TURTLE])) == len(graph)


def test_similar_ids_have_different_names_in_rdf() -> None:
    pairs = [name.split(" ") for name in ("a.b c", "a b.c", "a/b c", "a%2Eb c", "a%2Fb c", "A b.c", ".. .", ". ..")]
    ids = dict.fromkeys(agent for agent, _ in pairs)
    tools_of = {i: tuple(Tool(agent=i, name=name) for agent, name in pairs if agent == i) for i in ids}
    catalog = Catalog(agents=tuple(Agent(id=i, tools=tools) for i, tools in tools_of.items()))
    subjects = set(to_graph(catalog).subjects())
    assert len(subjects) == 1 + len(ids) + len(pairs)
    assert same(from_rdf(to_rdf(catalog)), catalog)


def test_lone_surrogates_become_question_marks() -> None:
    schema = {"properties": {"x\ud800": {"description": "\udfff"}}}
    tool = Tool(agent="a", name="t", input_schema=schema)
    read = from_rdf(to_rdf(Catalog(agents=(Agent(id="a", description="\ud800b", tools=(tool,)),)))).agents[0]
    assert read.description == "?b"
    assert read.tools[0].input_schema == {"properties": {"x?": {"description": "?"}}}


@every_form
def test_a_megabyte_of_description_is_written_and_read(form: RdfFormat) -> None:
    tool = Tool(agent="a", name="t", description='A long "story".\n' * 60_000)
    catalog = Catalog(agents=(Agent(id="a", tools=(tool,)),))
    assert from_rdf(to_rdf(catalog, form=form), form=form) == catalog
