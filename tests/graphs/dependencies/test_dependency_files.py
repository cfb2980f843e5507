"""Files of dependencies beside a catalog: read, written, merged, refused; and circles among what programs propose."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Catalog, CatalogError, DependencyKind, Provenance, dump, load
from callsheet.graphs.dependencies import (
    Proposal,
    combine,
    decide,
    merge_proposals,
    read_dependencies,
    without_cycles,
    write_dependencies,
)
from callsheet.graphs.knowledge_graph import cycles
from scripted import tools_of_a


def edge(source: str = "travel/book_hotel", target: str = "maps/find_place", **fields: Any) -> Proposal:
    return Proposal(**{"source": source, "target": target, "kind": "parameter_directly", "parameter": "city", **fields})


@pytest.fixture
def written(tmp_path: Path, catalog: Catalog) -> Path:
    file = tmp_path / "callsheet.json"
    file.write_text(dump(catalog), encoding="utf-8")
    return file


def beside(tmp_path: Path, content: Any) -> Path:
    file = tmp_path / "dependencies.json"
    body = content if isinstance(content, str) else json.dumps({"callsheet_dependencies": 1, **content})
    file.write_text(body, encoding="utf-8")
    return file


def test_written_dependencies_are_read_back(tmp_path: Path) -> None:
    content = (edge(target="net/état", confidence=0.7, evidence="Ö", accept=True), edge(parameter=None))
    write_dependencies(content, tmp_path / "d.json")
    assert read_dependencies(tmp_path / "d.json") == content
    assert sum(line.startswith('  {"source"') for line in (tmp_path / "d.json").read_text().splitlines()) == 2


def test_accepted_edges_are_reviewed_refused_ones_left_out_others_only_proposed(tmp_path: Path, written: Path) -> None:
    edges = [
        edge("weather/forecast", kind="tool_directly", parameter=None, accept=True),  # which the tool says itself
        edge(accept=True),
        edge(target="weather/forecast", parameter=None, accept=False),
        edge(target="units/convert_mass", parameter=None, confidence=0.6, accept=None),
        edge(target="units/convert_length", parameter=None, count=3),
    ]
    file = beside(tmp_path, {"edges": [one.model_dump(mode="json") for one in edges]})
    loaded = load(written, file)
    found = loaded.catalog.tool("travel/book_hotel").depends_on
    assert [(one.tool, one.provenance) for one in found] == [
        ("maps/find_place", Provenance.REVIEWED),
        ("units/convert_mass", Provenance.PROPOSED),
        ("units/convert_length", Provenance.OBSERVED),
    ]
    assert len(loaded.catalog.tool("weather/forecast").depends_on) == 1
    assert loaded.label == str(written), "the index stays the same, whatever lies beside the catalog"


def test_an_accepted_edge_of_a_parameter_that_the_tool_lacks_is_a_problem(tmp_path: Path, written: Path) -> None:
    file = beside(tmp_path, {"edges": [edge(parameter="citi", accept=True).model_dump(mode="json")]})
    loaded = load(written, file)
    (problem,) = loaded.problems
    assert "'travel/book_hotel' has no parameter 'citi' (did you mean 'city'?)" in problem.message
    assert [one.tool for one in loaded.catalog.tool("travel/book_hotel").depends_on] == ["maps/find_place"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"edges": [edge("travel/book_hotl").model_dump(mode="json")]}, "book_hotel"),
        ({"edges": [edge(target="maps/find_plac").model_dump(mode="json")]}, "'maps/find_place'"),
        ({"edges": [{"source": "a/b", "target": "c/d"}]}, "edges.0: Proposal: kind"),
        ({"edges": [{"source": "a/b", "target": "c/d", "kind": "tool_directly", "accept": "perhaps"}]}, "accept"),
        ({"edges": [{"source": "a/b", "target": "c/d", "kind": "tool_directly", "accept": "yes"}]}, "accept"),
        ({"edges": [{"source": "a/b", "target": "c/d", "kind": "sometimes"}]}, "edges.0: Proposal: kind"),
        ({"edges": {"a": 1}}, "edges"),
        ({"edge": []}, "edge"),
        ({"edges": [edge().model_dump(mode="json")] * 2}, "twice"),
        ({"edges": [edge(target="travel/book_hotel").model_dump(mode="json")]}, "depends on itself"),
        ('{"callsheet_dependencies": 2}', "format 2"),
        ('{"callsheet_dependencies": 1, "edges": [', "not valid JSON"),
        ('{"callsheet_dependencies": 1, "edges": [' + '{"source":' * 200 + "1" + "}" * 200 + "]}", "levels deep"),
    ],
)
def test_a_mistake_in_the_file_is_one_clear_line(tmp_path: Path, written: Path, content: Any, said: str) -> None:
    file = beside(tmp_path, content)
    with pytest.raises(CatalogError) as caught:
        load(written, file)
    message = str(caught.value)
    assert said in message
    assert str(file) in message
    assert "\n" not in message


def test_a_file_of_dependencies_alone_asks_for_its_catalog(tmp_path: Path) -> None:
    content = {"callsheet_dependencies": 1, "edges": [edge().model_dump(mode="json") | {"accept": True}]}
    with pytest.raises(CatalogError, match="contains only dependencies: name the catalog"):
        load(beside(tmp_path, content))


def test_a_cycle_of_declared_requirements_is_refused_and_shown(tmp_path: Path, written: Path) -> None:
    back = edge("maps/find_place", "travel/plan_trip", kind="tool_directly", parameter=None, accept=True)
    file = beside(tmp_path, {"edges": [back.model_dump(mode="json")]})
    with pytest.raises(CatalogError, match=r"edges\.0: .*maps/find_place -> travel/plan_trip -> .*maps/find_place"):
        load(written, file)
    for harmless in ({"accept": None}, {"kind": DependencyKind.TOOL_INDIRECTLY}):
        file = beside(tmp_path, {"edges": [back.model_copy(update=harmless).model_dump(mode="json")]})
        assert load(written, file).catalog.tool("maps/find_place").depends_on


@pytest.mark.parametrize("body", ["[]", "{}", '{"edges": []}', "\x00"])
def test_a_file_that_holds_no_dependencies_is_refused(tmp_path: Path, body: str) -> None:
    with pytest.raises(CatalogError, match=r"not (a file of dependencies|valid JSON)"):
        read_dependencies(beside(tmp_path, body))
    with pytest.raises(CatalogError, match="cannot be read"):
        read_dependencies(tmp_path / "none.json")
    with pytest.raises(CatalogError, match="cannot be written"):
        write_dependencies((), tmp_path / "no" / "folder.json")


def test_merging_loses_nothing_that_a_person_wrote() -> None:
    mine = edge(kind="parameter_indirectly", evidence="my own words", accept=True)
    gone, undecided = edge(parameter="old", accept=False), edge(parameter="other")
    before = (mine, gone, undecided)
    merged = merge_proposals(before, [edge(parameter="new"), edge(confidence=0.9)])
    assert merged == (edge(parameter="new"), mine, gone)


def test_the_same_edge_proposed_twice_has_the_higher_confidence_and_both_evidences() -> None:
    combined = combine([edge(confidence=0.6, evidence="name")], [edge(confidence=0.8, evidence="seen", count=4)])
    assert combined == (edge(confidence=0.8, evidence="seen; name", count=4),)


def test_a_tool_of_a_server_that_is_down_is_dropped_and_named(tmp_path: Path, catalog: Catalog) -> None:
    from callsheet.graphs.dependencies import attach

    content = (edge(target="mail/send", accept=True), edge(target="mail/login"))
    agents, problems = attach(catalog.agents, [("d.json", content)], lenient={"mail"})
    assert agents == catalog.agents
    assert [problem.agent for problem in problems] == ["d.json: edges.0", "d.json: edges.1"]
    assert all("it is dropped" in problem.message for problem in problems)


def test_a_decision_changes_its_edge_alone(tmp_path: Path, catalog: Catalog) -> None:
    file = beside(tmp_path, {"edges": [edge(count=2).model_dump(mode="json")]})
    decide(file, edge(count=2, accept=True), before=None, agents=catalog.agents)
    content = read_dependencies(file)
    assert content == (edge(count=2, accept=True),)
    with pytest.raises(CatalogError, match="was accepted by somebody else in the meantime"):
        decide(file, edge(accept=False), before=None, agents=catalog.agents)
    decide(file, edge(target="weather/forecast", accept=False), before=None, agents=catalog.agents)
    assert [one.accept for one in read_dependencies(file)] == [True, False]


def test_a_decision_that_no_catalog_could_load_is_not_written(tmp_path: Path, catalog: Catalog) -> None:
    file = beside(tmp_path, {"edges": []})
    cycle = edge("maps/find_place", "weather/forecast", accept=True)
    proposed = beside(tmp_path, {"edges": [edge("maps/find_place", "weather/forecast").model_dump(mode="json")]})
    known = load(catalog, proposed).catalog  # with the same edge, which nobody has accepted yet
    for agents in (catalog.agents, known.agents):
        with pytest.raises(CatalogError, match="cycle of tools that require each other"):
            decide(file, cycle, before=None, agents=agents)
    with pytest.raises(CatalogError, match="not in the catalog"):
        decide(file, edge(target="maps/nothing", accept=True), before=None, agents=catalog.agents)
    assert [one.accept for one in read_dependencies(file)] == [None]
    decide(file, cycle.model_copy(update={"accept": False}), before=None, agents=known.agents)


def test_two_decisions_at_the_same_time_make_no_cycle(tmp_path: Path, catalog: Catalog) -> None:
    there, back = edge("units/convert_length", "maps/find_place"), edge("maps/find_place", "units/convert_length")
    both = [one.model_dump(mode="json") for one in (there, back)]
    file = beside(tmp_path, {"edges": both})
    agents = load(catalog, file).catalog.agents  # as both of them know it
    decide(file, there.model_copy(update={"accept": True}), before=None, agents=agents)
    with pytest.raises(CatalogError, match="cycle of tools that require each other"):
        decide(file, back.model_copy(update={"accept": True}), before=None, agents=agents)
    decide(file, back.model_copy(update={"accept": False}), before=None, agents=agents)
    assert load(catalog, file).catalog.tools["maps/find_place"].depends_on == ()


def test_a_symbolic_link_to_decisions_stays_one_with_the_mode_of_its_file(tmp_path: Path, catalog: Catalog) -> None:
    file, link = beside(tmp_path, {"edges": []}), tmp_path / "link.json"
    file.chmod(0o640)
    link.symlink_to(file)
    decide(link, edge(accept=False), before=None, agents=catalog.agents)
    assert link.is_symlink()
    assert (len(read_dependencies(file)), file.stat().st_mode & 0o777) == (1, 0o640)


def proposal(source: str, target: str, confidence: float) -> Proposal:
    return Proposal(source=source, target=target, kind=DependencyKind.TOOL_DIRECTLY, confidence=confidence)


def test_a_declared_dependency_is_never_weakened_to_break_a_cycle() -> None:
    (found,) = without_cycles([proposal("a/y", "a/x", 1.0)], tools_of_a(x="y"))
    assert found.kind is DependencyKind.TOOL_INDIRECTLY


def one_by_one(edges: list[Proposal]) -> list[bool]:
    """What is direct when the least sure edge of every circle gives way, until there is no circle."""
    direct = set(range(len(edges)))
    while True:
        parts = cycles((edges[i].source, edges[i].target) for i in direct)
        inside = [[i for i in direct if edges[i].source in part and edges[i].target in part] for part in parts]
        if not inside:
            return [i in direct for i in range(len(edges))]
        direct -= {min(circle, key=lambda i: (edges[i].confidence, -i)) for circle in inside}


def test_cycles_are_broken_at_the_least_sure_edges() -> None:
    for seed in range(60):
        chance = random.Random(seed)
        names = "uvwxyz"[: chance.randint(2, 6)]
        edges = [
            proposal(f"a/{source}", f"a/{target}", round(chance.random(), 1))
            for source, target in (chance.sample(names, 2) for _ in range(chance.randint(1, 16)))
        ]
        found = without_cycles(edges, tools_of_a(**dict.fromkeys(names, "")))
        assert [edge.kind.direct for edge in found] == one_by_one(edges)
        assert [edge.confidence for edge in found] == [edge.confidence for edge in edges]


def test_breaking_the_cycles_of_a_large_graph_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0

    def counting(edges: Iterable[tuple[str, str]]) -> Any:
        nonlocal looked_at
        looked_at += len(pairs := list(edges))
        return cycles(pairs)

    monkeypatch.setattr(sys.modules["callsheet.graphs.knowledge_graph"], "cycles", counting)
    chance, names = random.Random(1), [f"t{number}" for number in range(500)]
    edges = [proposal(f"a/{name}", f"a/{other}", 0.8) for name in names for other in chance.sample(names, 2)]
    edges = [edge for edge in edges if edge.source != edge.target]
    found = without_cycles(edges, tools_of_a(**dict.fromkeys(names, "")))
    assert 100 < sum(edge.kind.direct for edge in found) < len(edges)
    assert looked_at < 12 * len(edges)
