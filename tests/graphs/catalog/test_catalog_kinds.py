from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, DependencyKind, Skill, SourceCatalog, Tool, agent_from_listing, dump, load


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": {}}, **more}


def test_a_manifest(tmp_path: Path) -> None:
    manifest = {
        "name": "math",
        "description": "Sums.",
        "instructions": "Add first.",
        "tools": [
            entry(
                "add",
                title="Add",
                description="Adds.",
                outputSchema={"properties": {"sum": {"type": "number"}}},
                annotations={"readOnlyHint": True},
                _meta={"callsheet/core": True, "other": 1},
                unknown="passed over",
            )
        ],
    }
    agent = load(write(tmp_path / "m.json", manifest)).catalog.agent("math")
    assert (agent.description, agent.instructions) == ("Sums.", "Add first.")
    (add,) = agent.tools
    assert (add.id, add.title, add.description, add.core) == ("math/add", "Add", "Adds.", True)
    assert add.annotations == {"readOnlyHint": True}
    assert [output.name for output in add.outputs] == ["sum"]


def test_a_raw_recording(tmp_path: Path) -> None:
    greeting = {"serverInfo": {"name": "x", "description": "Clocks."}, "instructions": "Say the zone."}
    recording = {"server": "time", "initialize": greeting, "tools": [entry("now")]}
    agent = load(write(tmp_path / "r.json", recording)).catalog.agent("time")
    assert (agent.description, agent.instructions) == ("Clocks.", "Say the zone.")
    assert [tool.id for tool in agent.tools] == ["time/now"]
    for greeting in (None, "hello", {}, {"serverInfo": "x", "instructions": 3}):
        recording = {"server": "time", "initialize": greeting, "tools": []}
        assert load(write(tmp_path / "r.json", recording)).catalog.agent("time").instructions == ""


def test_a_folder_is_read_in_the_order_of_its_file_names(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        write(tmp_path / f"{name}.json", {"name": name.upper(), "tools": [entry("t")]})
    write(tmp_path / "notes.txt", "not for us")
    write(tmp_path / "package.json", {"version": 1})
    loaded = load(tmp_path)
    assert [agent.id for agent in loaded.catalog.agents] == ["A", "B", "C"]
    assert [(p.agent, p.kind) for p in loaded.problems] == [("package.json", "malformed")]


def test_a_malformed_tool_is_named_and_the_rest_loads(tmp_path: Path) -> None:
    both = entry("both"), entry("both", title="Both")
    tools = [entry("ok"), {"description": "no name"}, "x", *both, {"name": "odd", "inputSchema": []}]
    loaded = load(write(tmp_path / "m.json", {"name": "a", "tools": tools}))
    assert list(loaded.catalog.tools) == ["a/ok"]
    said = [problem.message for problem in loaded.problems]
    words = ("'odd'", "2 tools are named 'both'", "entry 2", "entry 3")
    assert all(word in text for word, text in zip(words, said, strict=True))


def test_entries_that_are_the_same_are_one_and_no_schema_means_no_parameters(tmp_path: Path) -> None:
    bare = {"name": "x", "inputSchema": None}
    loaded = load(write(tmp_path / "m.json", {"name": "a", "tools": [bare, entry("y"), bare]}))
    assert list(loaded.catalog.tools) == ["a/x", "a/y"]
    assert not loaded.problems
    assert loaded.catalog.tool("a/x").input_schema == {"type": "object", "properties": {}}


def test_livemcpbench(tmp_path: Path) -> None:
    listing = {
        "weather-mcp": {"tools": [entry("forecast", description="Forecast.")]},
        "rain-mcp": {"tools": [entry("forecast")]},
    }
    published = [{"name": "Weather", "description": "Sky.", "category": "Lifestyle", "config": {}, "tools": listing}]
    path = write(tmp_path / "tools.json", published)
    for source in (path, tmp_path):
        catalog = load(source).catalog
        assert list(catalog.tools) == ["weather-mcp/forecast", "rain-mcp/forecast"]
        agent = catalog.agent("weather-mcp")
        assert (agent.name, agent.description, agent.category) == ("Weather", "Sky.", "Lifestyle")


def test_toollinkos(tmp_path: Path) -> None:
    core = [{"name": "get_user", "description": "Who.", "parameters": [], "depends_on": [], "func_type": "core"}]
    edges = [
        {"name": "get_user", "dependence_type": "TOOL_DIRECTLY_DEPENDS_ON", "reason": "Whose."},
        {"name": "get_user", "dependence_type": "PARAMETER_INDIRECTLY_DEPENDS_ON", "parameter_name": "who"},
        {"name": "get_user", "dependence_type": "TOOL_DEPENDS_ON"},
    ]
    parameters = [{"name": "who", "type": "string", "required": True}, {"name": "n", "type": "integer"}]
    regular = [{"name": "book", "description": "Book.", "parameters": parameters, "depends_on": edges}]
    write(tmp_path / "core_tools.json", core)
    for source in (tmp_path, write(tmp_path / "regular_tools.json", regular)):
        catalog = load(source).catalog
        book = catalog.tool("toollinkos/book")
        assert [p.name for p in book.parameters if p.required] == ["who"]
        assert [(e.tool, e.kind, e.parameter) for e in book.depends_on] == [
            ("toollinkos/get_user", DependencyKind.TOOL_DIRECTLY, None),
            ("toollinkos/get_user", DependencyKind.PARAMETER_INDIRECTLY, "who"),
            ("toollinkos/get_user", DependencyKind.TOOL_DIRECTLY, None),
        ]
        assert catalog.tool("toollinkos/get_user").core


@pytest.mark.parametrize("content", [[], {"mcpServers": {}}])
def test_a_file_of_nothing_is_an_empty_catalog(tmp_path: Path, content: object) -> None:
    assert load(write(tmp_path / "tools.json", content)).catalog == Catalog()


def test_several_sources_are_joined_in_order(tmp_path: Path, catalog: Catalog) -> None:
    extra = SourceCatalog((Agent(id="extra"),), connections={"extra": object()})
    loaded = load(catalog, write(tmp_path / "m.json", {"name": "file", "tools": []}), extra, load(Catalog()))
    assert [agent.id for agent in loaded.catalog.agents] == ["weather", "units", "maps", "travel", "file", "extra"]
    assert list(loaded.connections) == ["extra"]
    assert loaded.label == str((tmp_path / "m.json").resolve())


def test_dependencies_may_cross_sources() -> None:
    needs = {"callsheet/depends_on": [{"tool": "b/y", "kind": "tool_directly"}]}
    a, _ = agent_from_listing("a", [entry("x", _meta=needs)])
    loaded = load(SourceCatalog((a,)), Catalog(agents=(Agent(id="b", tools=(Tool(agent="b", name="y"),)),)))
    assert [edge.tool for edge in loaded.catalog.tool("a/x").depends_on] == ["b/y"]


@pytest.mark.parametrize(
    ("tool", "other"), [("b/ok", "a/b"), ("b", "a/b"), ("b/c/ok", "a/b"), ("io/ok", "a/io"), ("ok", "skills/ok")]
)
def test_a_tool_whose_id_belongs_to_another_node_is_left_out_alone(tool: str, other: str) -> None:
    agent = other.partition("/")[0]
    invading, _ = agent_from_listing(agent, [entry(tool), entry("fine")])
    own, _ = agent_from_listing(other if agent == "a" else "web", [entry("ok"), entry("get")])
    loaded = load(SourceCatalog((invading, own), skills=() if agent == "a" else (Skill(name="ok"),)))
    assert list(loaded.catalog.tools) == [f"{agent}/fine", *(one.id for one in own.tools)]
    (problem,) = loaded.problems
    assert str(problem) == f"{agent}: tool {tool!r} is left out: '{agent}/{tool}' belongs to {other!r} by its name"


def test_slashes_in_names_harm_nobody() -> None:
    a, _ = agent_from_listing("a", [entry("b/ok"), entry("c/d/e")])
    b, _ = agent_from_listing("io.github.b/c", [entry("ok"), entry("files/read")])
    loaded = load(SourceCatalog((a, b)))
    assert loaded.problems == ()
    assert list(loaded.catalog.tools) == ["a/b/ok", "a/c/d/e", "io.github.b/c/ok", "io.github.b/c/files/read"]


def test_the_mark_of_a_windows_editor_is_passed_over_and_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    text = (
        "\ufeff"
        + r'{"name": "a\ud800", "tools": [{"name": "x\udfff", "inputSchema": {"properties": {"p\ud800": {}}}}]}'
    )
    catalog = load(write(tmp_path / "m.json", text)).catalog
    assert list(catalog.tools) == ["a?/x?"]
    assert [p.name for p in catalog.tool("a?/x?").parameters] == ["p?"]
    assert dump(catalog).encode("utf-8")


def test_a_schema_nested_too_deeply_is_left_out_by_name(tmp_path: Path) -> None:
    def nested(levels: int) -> str:
        return '{"p":' * levels + "1" + "}" * levels

    def manifest(levels: int) -> Path:
        text = f'{{"name": "a", "tools": [{{"name": "deep", "inputSchema": {nested(levels)}}}, {{"name": "flat"}}]}}'
        return write(tmp_path / "m.json", text)

    for levels in (101, 400):
        loaded = load(manifest(levels))
        assert list(loaded.catalog.tools) == ["a/flat"]
        assert "tool 'deep': nested more than 100 levels deep" in loaded.problems[0].message
    kept = load(manifest(99)).catalog
    assert "a/deep" in kept.tools
    assert load(write(tmp_path / "own.json", dump(kept))).catalog == kept
