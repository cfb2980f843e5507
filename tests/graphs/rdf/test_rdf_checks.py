"""Every SHACL shape and every SPARQL check finds what it is for, and names agent, tool and cure."""

from __future__ import annotations

import pyshacl
import pytest
from rdflib import RDF, SH, Graph

from callsheet.graphs import Agent, Capability, Catalog, Dependency, DependencyKind, Finding, Severity, Tool
from callsheet.graphs.rdf import BASE, RdfFormat, checks, graph_findings, parse, rdf_findings, shapes

PREFIXES = """
@prefix cs: <https://w3id.org/callsheet/ns#> . @prefix dcterms: <http://purl.org/dc/terms/> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""
GOOD = """
<c> a cs:Catalog ; cs:lists <a> .
<a> a cs:Agent ; dcterms:identifier "a" ; cs:hosts <t>, <u> .
<t> a cs:Tool ; dcterms:identifier "a/t" ; cs:name "t" ; cs:hostedOn <a> .
<u> a cs:Tool ; dcterms:identifier "a/u" ; cs:name "u" ; cs:hostedOn <a> .
"""
NEEDS = "<t> cs:hasDependency <d> . <d> a cs:Dependency ; cs:needs <u> ; cs:kind 'tool_directly' "
EDGES = ". <t> cs:dependsOn <u> ; cs:toolDirectlyDependsOn <u> "
FIELD = "<p> a cs:Parameter ; cs:name 'p' . "


def found(text: str) -> tuple[Finding, ...]:
    return graph_findings(parse(f"{PREFIXES}{GOOD}{text}", form=RdfFormat.TURTLE))


def test_a_correct_graph_has_no_findings() -> None:
    assert found("") == ()
    assert found(f"{NEEDS}{EDGES}.") == ()
    assert found(f"{FIELD} <t> cs:hasRequiredInput <p> ; cs:hasInput <o> . <o> a cs:Parameter ; cs:name 'o' .") == ()


CASES = [
    ("<a> dcterms:identifier 'b' .", "agent-id", ""),
    ("<a> cs:hosts <x> .", "agent-hosts", ""),
    ("<s> a cs:Skill ; cs:name 's' .", "skill-id", ""),
    ("<s> a cs:Skill ; cs:name 's' ; dcterms:identifier 'skills/s' ; cs:namesTool <a> .", "skill-tool", ""),
    ("<t> dcterms:description 'a', 'b' .", "one-description", "a/t"),
    ("<t> cs:name 'z' .", "tool-name", "a/t"),
    ("<t> cs:position 'x' .", "one-position", "a/t"),
    ("<t> cs:hostedOn <b> . <b> a cs:Agent ; dcterms:identifier 'b' ; cs:hosts <t> .", "tool-agent", "a/t"),
    ("<x> a cs:Tool ; cs:name 'x' ; cs:hostedOn <a> . <a> cs:hosts <x> .", "tool-id", f"{BASE}x"),
    ("<t> cs:hasInput <a> .", "tool-input", "a/t"),
    (f"{FIELD}<t> cs:hasRequiredInput <p> ; cs:hasInput <p> .", "tool-required-or-optional", "a/t"),
    (f"{FIELD}<t> cs:hasOutput <p> .", "tool-output", "a/t"),
    ("<t> cs:hasCapability <a> .", "tool-capability", "a/t"),
    ("<t> cs:hasDependency <a> .", "tool-dependency", "a/t"),
    ("<t> cs:dependsOn <nowhere> ; cs:toolDirectlyDependsOn <nowhere> .", "tool-needs-tool", "a/t"),
    ("<t> cs:inputSchema '{}' .", "input-schema", "a/t"),
    ("<t> cs:outputSchema '{}' .", "output-schema", "a/t"),
    ("<t> cs:annotations '{}' .", "annotations", "a/t"),
    ("<t> cs:readOnly 'yes' .", "rdf-shape", "a/t"),
    ("<p> a cs:Parameter . <t> cs:hasInput <p> .", "field-name", ""),
    (f"{NEEDS}, 'x' .", "dependency-kind", "a/t"),
    (f"{NEEDS}; cs:needs <nowhere> .", "dependency-needs", "a/t"),
    (f"{NEEDS}; cs:provenance 'rumour' .", "dependency-provenance", "a/t"),
    (f"{NEEDS}; cs:confidence 1.5 .", "dependency-confidence", "a/t"),
    (f"{NEEDS}; cs:count -1 .", "dependency-count", "a/t"),
    ("<d> a cs:Dependency ; cs:needs <u> ; cs:kind 'tool_directly' .", "dependency-tool", ""),
    ("<k> a cs:Capability .", "capability-id", ""),
    ("<k> a cs:Capability ; skos:notation 'k' ; skos:broader <a> .", "capability-broader", ""),
    ("<b> a cs:Agent ; dcterms:identifier 'b' .", "traversal-from-catalog", ""),
    (FIELD, "traversal-to-fields", ""),
    ("<x> a cs:Tool ; dcterms:identifier 'a/x' ; cs:name 'x' ; cs:hostedOn <a> .", "inverse-hosts", "a/x"),
    ("<k> skos:notation 'k' ; skos:broader <l> .", "inverse-broader", ""),
    ("<k> skos:notation 'k' ; skos:broader <l> . <l> skos:broader <k> .", "hierarchy-cycle", ""),
    ("<t> cs:toolDirectlyDependsOn <u> .", "hierarchy-dependencies", "a/t"),
    (f"{NEEDS}.", "integrity-dependencies", "a/t"),
    ("<t> cs:dependsOn <u> .", "integrity-kind", "a/t"),
    (f"{NEEDS}; cs:parameterName 'place' {EDGES}.", "integrity-parameters", "a/t"),
    ("<t> cs:dependsOn <t> ; cs:toolDirectlyDependsOn <t> .", "integrity-self", "a/t"),
    ("<x> a cs:Tool ; dcterms:identifier 'b/x' ; cs:name 'x' ; cs:hostedOn <a> .", "integrity-ids", "b/x"),
    ("<b> a cs:Agent ; dcterms:identifier 'a' .", "integrity-unique", ""),
    ("<t> cs:hasCapability <k> . <k> a cs:Capability ; skos:notation 'k' .", "integrity-defined", "a/t"),
]


def test_each_shape_and_check_finds_its_fault() -> None:
    for text, rule, tool in CASES:
        named = [finding for finding in found(text) if finding.rule == rule]
        assert named
        assert named[0].tool == tool
        assert "\n" not in named[0].message


def test_every_shape_and_check_has_a_case() -> None:
    graph = Graph().parse(data=shapes(), format="turtle")
    named = {str(shape).rpartition("#")[2] for shape in graph.subjects(RDF.type, SH.PropertyShape)}
    assert named | set(checks()) <= {rule for _, rule, _ in CASES} | {"one-name"}


@pytest.mark.exhaustive
def test_the_shapes_are_valid_shacl() -> None:
    graph = Graph().parse(data=shapes(), format="turtle")
    conforms, _, said = pyshacl.validate(Graph(), shacl_graph=graph, meta_shacl=True)
    assert conforms, said


def test_a_catalog_is_checked_against_the_given_taxonomy() -> None:
    itself = Dependency(tool="a/t", kind=DependencyKind.TOOL_DIRECTLY, parameter="q")
    tool = Tool(agent="a", name="t", capabilities=("search", "my own"), depends_on=(itself,))
    catalog = Catalog(agents=(Agent(id="a", tools=(tool,)),))
    said = {finding.rule: finding for finding in rdf_findings(catalog)}
    assert set(said) == {"integrity-defined", "integrity-parameters", "integrity-self"}
    assert said["integrity-defined"].message.startswith("its capability 'my own' is not in the taxonomy")
    assert {(finding.severity, finding.agent, finding.tool) for finding in said.values()} == {
        (Severity.WARNING, "a", "a/t")
    }
    own = Capability(id="my own", name="own", definition="Ours.", examples=("x", "y"))
    assert "my own" not in " ".join(finding.message for finding in rdf_findings(catalog, [own]))
