"""Rules on problems, dependencies and capabilities."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.graphs import Agent, Catalog, CatalogError, Dependency, DependencyKind, Problem, Severity, Tool
from callsheet.graphs.capabilities.taxonomy import default_taxonomy
from callsheet.graphs.lint import Subject, lint, schema_rules

DIRECT, LOOSE = DependencyKind.TOOL_DIRECTLY, DependencyKind.TOOL_INDIRECTLY


def tools(*edges: tuple[str, str, DependencyKind], also: str = "") -> Subject:
    names = dict.fromkeys([*(name for a, b, _ in edges for name in (a, b)), *also])
    made = tuple(
        Tool(agent="a", name=n, depends_on=tuple(Dependency(tool=f"a/{b}", kind=k) for a, b, k in edges if a == n))
        for n in names
    )
    return Subject(Catalog(agents=(Agent(id="a", tools=made),)), default_taxonomy())


def circles(*edges: tuple[str, str, DependencyKind]) -> list[str]:
    found = [finding.message for finding in schema_rules.dependency_cycle.findings(tools(*edges))]
    return [message.split(": ")[1] for message in found]


def test_a_circle_is_shown_whole() -> None:
    edges = [("p", "q", DIRECT), ("q", "r", DependencyKind.PARAMETER_DIRECTLY), ("r", "p", DIRECT), ("q", "s", DIRECT)]
    assert circles(*edges) == ["a/p -> a/q -> a/r -> a/p"]


def test_each_circle_is_told_once() -> None:
    edges = [("p", "q", DIRECT), ("q", "p", DIRECT), ("r", "s", DIRECT), ("s", "r", DIRECT), ("t", "t", DIRECT)]
    assert circles(*edges) == ["a/p -> a/q -> a/p", "a/r -> a/s -> a/r", "a/t -> a/t"]


def test_indirect_dependencies_may_go_round() -> None:
    assert circles(("p", "q", DIRECT), ("q", "p", LOOSE)) == []
    assert circles() == []


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


def test_a_folder_with_a_malformed_manifest_is_one_finding(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text('{"name": "good", "description": "Adds.", "tools": []}')
    (tmp_path / "bad.json").write_text('{"name": "bad", "tools": [')
    [finding] = lint(tmp_path)
    assert finding.rule == "load-problem"
    assert "bad.json: not valid JSON" in finding.message
    assert "\n" not in finding.message


def test_a_dependency_that_points_nowhere_is_the_callers_mistake(tmp_path: Path) -> None:
    listing = '{"name": "x", "_meta": {"callsheet/depends_on": [{"tool": "gone", "kind": "tool_directly"}]}}'
    (tmp_path / "a.json").write_text(f'{{"name": "a", "tools": [{listing}]}}')
    with pytest.raises(CatalogError, match=r"a/x.*gone"):
        lint(tmp_path)
