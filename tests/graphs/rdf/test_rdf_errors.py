"""RDF that is not a catalog: one clear line for each mistake, and nothing is fetched."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from callsheet.graphs import CatalogError, load
from callsheet.graphs.rdf import RdfFormat, from_rdf, rdf_file_findings, to_rdf

PREFIXES = """
@prefix cs: <https://w3id.org/callsheet/ns#> . @prefix dcterms: <http://purl.org/dc/terms/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""
AGENT = "<a> a cs:Agent ; dcterms:identifier 'a' ."
BARE = f"{AGENT} <t> a cs:Tool ; cs:name 'x' ; dcterms:identifier 'a/x' ; cs:hostedOn <a> "
TOOL = f"{BARE} ; cs:inputSchema '{{}}' "


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("turtle", "<a> <b> .\n\n<c", "not valid Turtle: objectList expected, line 1"),
        ("turtle", "(" * 5_000, "nested too deeply"),
        ("turtle", "", "contains no catalog"),
        ("ntriples", "<a:a> <a:b> <a:c> .\n\n<a:a> <a:b> c .\n", r"not valid N-Triples: .*Invalid line: c \."),
        ("ntriples", '<a:a> <a:b> "\\q" .', "contains no catalog|not valid N-Triples"),
        ("jsonld", "{", "not valid JSON-LD: .*line 1 column 2"),
        ("jsonld", '"a text"', "not valid JSON-LD: its structure"),
        ("jsonld", "[" * 100_000, "nested too deeply"),
        (
            "jsonld",
            '{"@context": "https://127.0.0.1:1/c"}',
            "@context is at 'https://127.0.0.1:1/c', which is not fetched",
        ),
        ("jsonld", '[{"@context": ["file:///etc/hosts"]}]', "which is not fetched"),
        ("jsonld", '{"@context": {"@import": "context.json"}}', "which is not fetched"),
        ("jsonld", '{"@context": {"x": {"@id": "a:x", "@context": "b"}}, "x": {"@id": "a:y"}}', "which is not fetched"),
    ],
)
def test_invalid_rdf_is_refused_in_one_line(form: str, text: str, said: str) -> None:
    with pytest.raises(CatalogError, match=said) as raised:
        from_rdf(text, form=RdfFormat(form))
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<t> a cs:Tool ; cs:name 'x' . <c> a cs:Catalog .", "<.*/t> is hosted on 0 agents"),
        (f"{BARE}, <b> .", "is hosted on 2 agents"),
        (f"{AGENT} <t> a cs:Tool ; cs:name 'x' ; cs:hostedOn <b> .", "hosted on <.*/b>, which is not a cs:Agent"),
        (f"{AGENT} <t> a cs:Tool ; cs:hostedOn <a> .", "<.*/t> has no cs:name"),
        ("<a> a cs:Agent .", "<.*/a> has no dcterms:identifier"),
        (f"{AGENT} <b> a cs:Agent ; dcterms:identifier 'a' .", "two nodes of the catalog have the id 'a'"),
        (
            f"{TOOL}. <u> a cs:Tool ; cs:name 'x' ; cs:hostedOn <a> ; cs:inputSchema '{{}}' .",
            "agent 'a' has two tools named 'x'",
        ),
        (f"{TOOL}; cs:position 'first' .", "cs:position is 'first', which is not a number"),
        (f"{TOOL}; cs:core 'maybe'^^xsd:boolean .", "cs:core is '.*', which is not a boolean"),
        (f"{BARE}.", "tool 'a/x': <.*/t> has no cs:inputSchema"),
        (f"{BARE}; cs:inputSchema '{{' .", "tool 'a/x': '{' is not valid JSON"),
        (f"{BARE}; cs:inputSchema '[]' .", "tool 'a/x': cs:inputSchema is not an object"),
        (f"{BARE}; cs:inputSchema '{'[' * 100_000}' .", "nested too deeply"),
        (f"{TOOL}; cs:readOnly true .", "tool 'a/x': <.*/t> has no cs:annotations"),
        (f"{TOOL}; cs:hasOutput [ cs:name 'sky' ] .", "tool 'a/x': <.*/t> has no cs:outputSchema"),
        (f"{TOOL}; dcterms:description 'a', 'b' .", "has 2 values of dcterms:description: keep one"),
        (f"{TOOL}; cs:toolDirectlyDependsOn <u> .", "tool 'a/x': depends on <.*/u>, which is not a cs:Tool here"),
        (f"{TOOL}; cs:hasDependency [ cs:needs <u> ; cs:kind 'tool_directly' ] .", "tool 'a/x': depends on <.*/u>"),
        (f"{TOOL}; cs:hasDependency [ cs:kind 'tool_directly' ] .", "has no cs:needs"),
        (f"{TOOL}; cs:hasDependency [ cs:needs <t> ] .", "has no cs:kind"),
        (f"{TOOL}; cs:hasDependency [ cs:needs <t> ; cs:kind 'loosely' ] .", "kind: Input should be 'tool_directly'"),
        (
            f"{TOOL}; cs:hasDependency [ cs:needs <t> ; cs:kind 'tool_directly' ; cs:confidence 7 ] .",
            "confidence: Input should be less than or equal to 1",
        ),
        (
            f"{TOOL}; cs:hasDependency [ cs:needs <t> ; cs:kind 'tool_directly' ; cs:count 1e999 ] .",
            "cs:count is '.*', which is not a number",
        ),
        (
            f"{TOOL}; cs:hasDependency [ cs:needs <t> ; cs:kind 'tool_directly' ; cs:count {'9' * 400} ] .",
            "cs:count is '9*', which is not a number",
        ),
    ],
)
def test_rdf_that_is_not_a_catalog_is_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    place = tmp_path / "catalog.ttl"
    place.write_text(PREFIXES + text, encoding="utf-8")
    with pytest.raises(CatalogError, match=said) as raised:
        load(place)
    assert str(raised.value).startswith(f"{place}: ")
    assert "\n" not in str(raised.value)
    assert "rdf-catalog" in {finding.rule for finding in rdf_file_findings(place)}


def test_a_cycle_of_dependencies_is_read_like_any_other() -> None:
    other = "<u> a cs:Tool ; cs:name 'y' ; dcterms:identifier 'a/y' ; cs:hostedOn <a> "
    other += "; cs:toolDirectlyDependsOn <t> ; cs:inputSchema '{}' ."
    catalog = from_rdf(f"{PREFIXES}{TOOL}; cs:toolDirectlyDependsOn <u> . {other}")
    assert [tool.depends_on[0].tool for tool in catalog.tools.values()] == ["a/y", "a/x"]
    assert from_rdf(to_rdf(catalog)) == catalog


@pytest.mark.parametrize(("name", "content", "said"), [("x.ttl", b"\xff", "not UTF-8"), ("x.nt", b"?", "Invalid line")])
def test_a_broken_file_is_one_finding(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    (finding,) = rdf_file_findings(tmp_path / name)
    assert finding.rule == "rdf-syntax"
    assert said in finding.message


def test_nothing_is_logged_on_odd_literals(capfd: pytest.CaptureFixture[str]) -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("rdflib").handlers)
    with pytest.raises(CatalogError):
        from_rdf(f"{PREFIXES}{TOOL}; cs:core 'maybe'^^xsd:boolean ; cs:position 'x'^^xsd:integer .")
    assert capfd.readouterr().err == ""


def test_without_the_extra_the_error_names_it() -> None:
    program = "import sys; sys.modules['rdflib'] = None\nimport callsheet.graphs.rdf"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert "ImportError: RDF needs the extra rdf, which is not installed: in the checkout" in done.stderr
