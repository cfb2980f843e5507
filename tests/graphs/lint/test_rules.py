"""The rules together, and those on problems, dependencies and capabilities."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Problem, Severity, Tool, load
from callsheet.graphs.capabilities.taxonomy import default_taxonomy
from callsheet.graphs.lint import RULES, TRUST_RULES, Subject, lint, schema_rules

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "check.md"
_ROW = re.compile(r"^\| `([\w-]+)` \| (\w+) \| (.+) \|$", re.MULTILINE)


def test_the_page_lists_the_rules_as_they_are() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Rules")[2].partition("\n## ")[0]
    assert _ROW.findall(section) == [(rule.name, str(rule.severity), rule.about) for rule in RULES]


def test_a_catalog_without_fault_has_no_findings() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "number", "description": "A number."}}, "required": ["x"]}
    tools = (Tool(agent="sums", name="add", description="Adds to the sum.", input_schema=schema),)
    assert lint(Catalog(agents=(Agent(id="sums", description="Makes sums.", tools=tools),))) == ()
    assert lint(Catalog()) == ()


def test_only_the_rules_that_are_named_look() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    catalog = Catalog(agents=(Agent(id="a", description="\u202e", tools=(Tool(agent="a", name="x"),)),))
    assert {finding.rule for finding in lint(catalog, rules=TRUST_RULES)} == {"hidden-text"}
    assert {"empty-description", "hidden-text"} <= {finding.rule for finding in lint(catalog)}


@pytest.mark.parametrize("place", ["benchmarks/livemcpbench/tools.json", "benchmarks/toollinkos"])
@pytest.mark.slow
def test_no_text_of_public_catalogs_is_accused(shared: Path, place: str) -> None:
    if not (shared / place).exists():
        pytest.skip(f"{place} is not among the public data beside this checkout")
    assert lint(load(shared / place), rules=TRUST_RULES) == ()


DIRECT, PARAMETER = DependencyKind.TOOL_DIRECTLY, DependencyKind.PARAMETER_DIRECTLY
LOOSE = DependencyKind.TOOL_INDIRECTLY


@pytest.mark.parametrize(
    ("edges", "circles"),
    [
        ((("p", "q", DIRECT), ("q", "r", PARAMETER), ("r", "p", DIRECT), ("q", "s", DIRECT)), ["p -> q -> r -> p"]),
        ((("p", "q", DIRECT), ("q", "p", DIRECT), ("t", "t", DIRECT)), ["p -> q -> p", "t -> t"]),
        ((("p", "q", DIRECT), ("q", "p", LOOSE)), []),
    ],
)
def test_each_circle_of_direct_dependencies_is_shown_whole_and_once(edges: Any, circles: list[str]) -> None:
    names = dict.fromkeys(name for source, target, _ in edges for name in (source, target))
    needs = {n: tuple(Dependency(tool=f"a/{b}", kind=k) for a, b, k in edges if a == n) for n in names}
    made = tuple(Tool(agent="a", name=name, depends_on=needs[name]) for name in names)
    subject = Subject(Catalog(agents=(Agent(id="a", tools=made),)), default_taxonomy())
    found = [finding.message.split(": ")[1] for finding in schema_rules.dependency_cycle.findings(subject)]
    assert [circle.replace("a/", "") for circle in found] == circles


def test_an_unknown_capability_is_found_with_the_nearest() -> None:
    known = default_taxonomy().leaves[0]
    made = Tool(agent="a", name="x", capabilities=(known, f"{known}s"))
    [finding] = schema_rules.unknown_capability.findings(
        Subject(Catalog(agents=(Agent(id="a", tools=(made,)),)), default_taxonomy())
    )
    assert (finding.tool, finding.severity) == ("a/x", Severity.ERROR)
    assert f"did you mean {known!r}" in finding.message


def test_what_could_not_be_loaded_is_found() -> None:
    problems = (Problem("a", "malformed", "entry 2 is not an object"), Problem("b.json", "malformed", "not valid JSON"))
    found = schema_rules.load_problem.findings(Subject(Catalog(agents=(Agent(id="a"),)), default_taxonomy(), problems))
    assert [(f.agent, f.message) for f in found] == [("a", "entry 2 is not an object"), ("", "b.json: not valid JSON")]
