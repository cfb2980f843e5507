"""The rules together: the page about them, and what they say of public catalogs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from callsheet.graphs import Agent, Catalog, Severity, Tool, load
from callsheet.graphs.lint import RULES, TRUST_RULES, lint

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "check.md"
_ROW = re.compile(r"^\| `([\w-]+)` \| (\w+) \| (.+) \|$", re.MULTILINE)


def test_the_page_lists_the_rules_as_they_are() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Rules")[2].partition("\n## ")[0]
    assert _ROW.findall(section) == [(rule.name, str(rule.severity), rule.about) for rule in RULES]


def test_every_rule_has_a_name_of_its_own() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert set(TRUST_RULES) <= set(RULES)


def test_a_catalog_without_fault_has_no_findings() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "number", "description": "A number."}}, "required": ["x"]}
    tools = (Tool(agent="sums", name="add", description="Adds to the sum.", input_schema=schema),)
    assert lint(Catalog(agents=(Agent(id="sums", description="Makes sums.", tools=tools),))) == ()
    assert lint(Catalog()) == ()


def test_only_the_rules_that_are_named_look() -> None:
    catalog = Catalog(agents=(Agent(id="a", description="\u202e", tools=(Tool(agent="a", name="x"),)),))
    assert {finding.rule for finding in lint(catalog, rules=TRUST_RULES)} == {"hidden-text"}
    assert {"empty-description", "hidden-text"} <= {finding.rule for finding in lint(catalog)}


@pytest.mark.parametrize(
    ("place", "others"),
    [
        ("fleet/manifests", {}),
        ("benchmarks/livemcpbench/tools.json", {"invalid-schema": 1, "near-identical-tools": 7}),
        ("benchmarks/toollinkos", {"invalid-schema": 248, "duplicate-description": 3}),
    ],
)
@pytest.mark.slow
def test_real_servers_are_not_accused(shared: Path, place: str, others: dict[str, int]) -> None:
    if not (shared / place).exists():
        pytest.skip(f"{place} is not among the public data beside this checkout")
    found = Counter(finding.rule for finding in lint(load(shared / place)) if finding.severity != Severity.INFO)
    assert not set(found) & {rule.name for rule in TRUST_RULES}
    assert {rule: n for rule, n in found.items() if rule != "empty-description"} == others
