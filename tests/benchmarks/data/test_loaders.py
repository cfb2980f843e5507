"""Each loader over a few made-up lines in the published form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.sets.cases import Benchmark, Case, wanted
from benchmarks.sets.loaders import (
    LOADERS,
    livemcpbench,
    load_benchmarks,
    restbench,
    shuffled,
    toollinkos,
    toolsandbox,
)
from callsheet.graphs import Agent, Catalog, CatalogError, Tool


def write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")


def server(key: str, *tools: str) -> dict[str, Any]:
    listing = [{"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}} for name in tools]
    return {"name": key.upper(), "description": f"About {key}.", "category": "Test", "tools": {key: {"tools": listing}}}


def step(text: str, tools: list[list[str]], single: list[str]) -> dict[str, Any]:
    agents = [[tool.split("/")[0] for tool in alternatives] for alternatives in tools]
    return {"text": text, "gold_tools": tools, "gold_agents": single, "gold_agent_alts": agents}


@pytest.fixture
def livemcp(tmp_path: Path) -> dict[str, Benchmark]:
    write(tmp_path / "tools.json", [server("files", "write"), server("disk", "write"), server("clock", "now", "zone")])
    steps = [
        step("Look at the time", [["clock/now"], ["clock/zone"]], ["clock"]),
        step("Write it down", [["files/write", "disk/write"]], ["files"]),
        step("Think about it", [], []),
    ]
    write(tmp_path / "aligned.json", {"queries": [{"id": "t1", "text": "Note the time", "steps": steps}]})
    return {bench.name: bench for bench in livemcpbench(tmp_path)}


def test_livemcpbench_by_step_and_as_a_whole(livemcp: dict[str, Benchmark]) -> None:
    bench = livemcp["livemcpbench-steps"]
    clock, files, _ = bench.queries
    assert [(case.id, case.group) for case in bench.queries] == [(f"t1/{n}", "t1") for n in (1, 2, 3)]
    assert [case.query for case in bench.cases("agent")] == ["Look at the time", "Write it down"]
    assert clock.agents == (frozenset({"clock"}),)
    assert clock.tools == (frozenset({"clock/now"}), frozenset({"clock/zone"}))
    assert files.agents == (frozenset({"files", "disk"}),)
    assert livemcp["livemcpbench-steps-single"].queries[1].agents == (frozenset({"files"}),)
    (case,) = livemcp["livemcpbench-direct"].queries
    assert case.query == "Note the time"
    assert case.agents == (frozenset({"clock"}), frozenset({"files", "disk"}))
    assert len(case.tools) == 3


def test_livemcpbench_steps_of_agents_with_chinese_are_also_apart(
    tmp_path: Path, livemcp: dict[str, Benchmark]
) -> None:
    assert "livemcpbench-steps-chinese" not in livemcp
    servers = json.loads((tmp_path / "tools.json").read_text(encoding="utf-8"))
    servers[2]["tools"]["clock"]["tools"][0]["description"] = "现在几点"
    write(tmp_path / "tools.json", servers)
    (bench,) = [bench for bench in livemcpbench(tmp_path) if bench.name == "livemcpbench-steps-chinese"]
    assert [case.query for case in bench.queries] == ["Look at the time"]
    assert len(bench.catalog.agents) == 3


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    def edge(name: str) -> dict[str, str]:
        return {"name": name, "dependence_type": "TOOL_DIRECTLY_DEPENDS_ON"}

    def tool(name: str, *needs: str) -> dict[str, Any]:
        return {"name": name, "description": name, "parameters": [], "depends_on": [edge(other) for other in needs]}

    write(tmp_path / "core_tools.json", [tool(name) for name in "abcdef"])
    write(tmp_path / "regular_tools.json", [tool("main", *"abcdef")])
    instance = {"user_query": "Do it", "main_golden_function_name": "main", "golden_function_names": ["main", "a"]}
    write(tmp_path / "instances.json", [instance])
    return tmp_path


def test_toollinkos_comes_in_published_and_in_shuffled_order(linked: Path) -> None:
    published, turned = toollinkos(linked)
    (case,) = published.queries
    assert case.group == "main"
    assert case.tools == (frozenset({"toollinkos/main"}), frozenset({"toollinkos/a"}))

    def order(bench: Benchmark) -> list[str]:
        return [edge.tool.removeprefix("toollinkos/") for edge in bench.catalog.tool("toollinkos/main").depends_on]

    assert order(published) == list("abcdef")
    assert sorted(order(turned)) == list("abcdef")
    assert order(turned) != order(published)
    assert shuffled(published.catalog, 1) == shuffled(published.catalog, 1)


def test_restbench_has_the_operations_with_their_edges_and_a_chain_a_question(tmp_path: Path) -> None:
    one = {"name": "movie_id", "in": "path", "required": True, "schema": {"type": "integer"}}
    paths = {
        "/search/movie": {"get": {"operationId": "GET_search-movie", "responses": {}}},
        "/movie/{movie_id}": {"parameters": [one], "get": {"operationId": "GET_movie-movie_id", "responses": {}}},
    }
    write(tmp_path / "tmdb_oas.json", {"openapi": "3.0.0", "info": {"title": "API", "version": "3"}, "paths": paths})
    names = ["GET /search/movie", "GET /movie/{movie_id}"]
    write(tmp_path / "tmdb_edges.json", [{"source": names[1], "target": names[0], "count": 1}])
    line = {"query": "Who made it?", "chain": [*names, names[0]]}
    (tmp_path / "tmdb.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    (bench,) = restbench(tmp_path)
    edges = {tool.id: [edge.tool for edge in tool.depends_on] for tool in bench.catalog.tools.values()}
    assert edges == {"api/GET_search-movie": [], "api/GET_movie-movie_id": ["api/GET_search-movie"]}
    (case,) = bench.queries
    assert case.tools == wanted([["api/GET_search-movie"], ["api/GET_movie-movie_id"]])


def test_toolsandbox_groups_wordings_of_one_scenario(tmp_path: Path) -> None:
    tools = [
        {"name": "send", "agent": "mail", "description": "Sends.", "input_schema": {"type": "object"}},
        {"name": "signal_on", "agent": "phone", "description": "Turns on.", "input_schema": {"type": "object"}},
    ]
    edges = [{"src": "send", "dst": "signal_on", "type": "TOOL_DIRECTLY_DEPENDS_ON", "param": None}]
    queries = [
        {"id": f"send{end}", "text": "Send", "gold_tools": ["send"]}
        for end in ("", "_alt", "_cellular_off", "_low_battery_mode_multiple_user_turn_alt", "_twice")
    ]
    write(tmp_path / "toolsandbox.json", {"tools": tools, "edges": edges, "queries": queries, "agents": []})
    (bench,) = toolsandbox(tmp_path)
    assert {case.group for case in bench.queries} == {"send"}
    (need,) = bench.catalog.tool("mail/send").depends_on
    assert (need.tool, need.kind.value) == ("phone/signal_on", "tool_directly")


@pytest.mark.parametrize(("name", "levels"), [("sealtools", ("agent", "tool")), ("metatool", ("tool",))])
def test_labelled_folders_are_data_sets(tmp_path: Path, name: str, levels: tuple[str, ...]) -> None:
    write(tmp_path / name / "catalog" / "a.json", {"name": "a", "tools": [{"name": "x", "description": "X"}]})
    lines = [
        {"id": "0", "query": "x?", "tools": ["a/x"], "agents": ["a"]},
        {"id": "1", "query": "y?", "tools": ["a/x"]},
    ]
    (tmp_path / name / "queries.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (bench,) = LOADERS[name](tmp_path / name)
    assert tuple(bench.levels) == levels
    assert [case.group for case in bench.queries] == ["a/x", "a/x"]


def test_a_missing_folder_is_named_with_where_its_source_is_told_and_the_others_go_on(linked: Path) -> None:
    (linked / "toollinkos").mkdir()
    for name in ("core_tools.json", "regular_tools.json", "instances.json"):
        (linked / name).rename(linked / "toollinkos" / name)
    benches, said = load_benchmarks(linked)
    assert [bench.name for bench in benches] == ["toollinkos-published", "toollinkos-shuffled"]
    assert any("metatool" in line and "docs/reference/benchmarks.md" in line for line in said)


def test_gold_that_the_catalog_does_not_hold_is_refused() -> None:
    catalog = Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="x"),)),))
    case = Case("1", "q", "g", tools=wanted([["a/y"]]))
    with pytest.raises(CatalogError, match="a/y"):
        Benchmark("b", "", catalog, (case,), {"tool": (1,)})
