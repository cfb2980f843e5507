"""Catalogs in memory and in files of each kind, and every mistake in words: what, which, and how to cure it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from callsheet.graphs import (
    Agent,
    Catalog,
    CatalogError,
    Dependency,
    DependencyKind,
    Skill,
    SourceCatalog,
    Tool,
    UnknownNameError,
    agent_from_listing,
    dump,
    load,
)
from fuzzing import fuzzed


def test_a_tool_is_identified_by_its_agent_and_name() -> None:
    twins = Catalog(agents=tuple(Agent(id=a, tools=(Tool(agent=a, name="read"),)) for a in ("files", "mail")))
    assert list(twins.tools) == ["files/read", "mail/read"]


def test_an_unknown_name_is_a_key_error_that_reads_well_and_gives_near_ones(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError, match=r"no agent 'wether' .*did you mean 'weather'"):
        catalog.agent("wether")
    with pytest.raises(UnknownNameError, match=r"did you mean 'units/convert_mass' or 'units/convert_length'"):
        catalog.tool("units/convert_mas")
    with pytest.raises(KeyError) as caught:
        catalog.tool("zzzz")
    assert str(caught.value) == "no tool 'zzzz' in the catalog"


def test_an_agent_has_each_tool_once_and_none_of_another() -> None:
    twice = (Tool(agent="a", name="x"), Tool(agent="a", name="x"))
    with pytest.raises(CatalogError, match=r"agent 'a' has two tools named 'x': rename or remove one"):
        Agent(id="a", tools=twice)
    with pytest.raises(CatalogError, match=r"agent 'a' holds tool 'x' of agent 'b': give the tool its owner's id"):
        Agent(id="a", tools=(Tool(agent="b", name="x"),))


def test_slashes_in_names_cannot_make_two_nodes_one() -> None:
    one, other = (
        Agent(id="a", tools=(Tool(agent="a", name="b/c"),)),
        Agent(id="a/b", tools=(Tool(agent="a/b", name="c"),)),
    )
    with pytest.raises(CatalogError, match=r"id 'a/b/c': rename one of them"):
        Catalog(agents=(one, other))


def test_a_dependency_cannot_point_nowhere() -> None:
    edge = Dependency(tool="a/yy", kind=DependencyKind.TOOL_DIRECTLY)
    tools = (Tool(agent="a", name="x", depends_on=(edge,)), Tool(agent="a", name="y"))
    with pytest.raises(CatalogError, match=r"'a/x' depends on 'a/yy'.*did you mean 'a/y'.*remove the dependency"):
        Catalog(agents=(Agent(id="a", tools=tools),))


def test_records_are_frozen(catalog: Catalog) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        catalog.agents[0].id = "other"  # type: ignore[misc]


def test_fields_that_are_blank_misspelt_or_missing_are_named() -> None:
    for name in ("", " ", "\t\n"):
        with pytest.raises(CatalogError, match="name"):
            Tool(agent="a", name=name)
    fields: dict[str, Any] = {
        "agents": [{"id": "a", "tools": [{"agent": "a", "name": "x"}, {"agent": "a", "nam": "y"}]}]
    }
    with pytest.raises(CatalogError, match=r"agents\.0.*tools\.1.*name: Field required; nam: Extra inputs"):
        Catalog(**fields)
    fields = {"agent": "a", "name": "x", "self": 1}
    with pytest.raises(CatalogError, match="self: Extra inputs"):
        Tool(**fields)


def test_only_the_two_direct_kinds_are_direct() -> None:
    assert {kind.value for kind in DependencyKind if kind.direct} == {"tool_directly", "parameter_directly"}


def test_parameters_come_from_the_input_schema() -> None:
    schema = {
        "properties": {
            "to": {"type": "string", "enum": ["m", "km"], "description": "Unit."},
            "n": {"type": ["integer", "null"], "default": 3},
            "when": {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}], "format": "date"},
            "odd": {},
            "broken": "not a schema",
        },
        "required": ["to", "absent"],
    }
    to, n, when, odd = Tool(agent="a", name="x", input_schema=schema).parameters
    assert (to.name, to.required, to.enum, to.description) == ("to", True, ("m", "km"), "Unit.")
    assert (n.type, n.default, n.required) == ("integer|null", 3, False)
    assert (when.type, when.format) == ("string|null", "date")
    assert odd.type == "any"
    for without in ({}, {"properties": []}, {"properties": None}, {"type": "string"}):
        assert Tool(agent="a", name="x", input_schema=without).parameters == ()


def test_outputs_are_the_fields_of_the_output_schema() -> None:
    with_output = Tool(agent="a", name="x", output_schema={"properties": {"km": {"type": "number"}}})
    assert [field.name for field in with_output.outputs] == ["km"]
    assert Tool(agent="a", name="x").outputs == ()


FORMS = "expected 'mcpServers' (or 'servers'), 'callsheet' with 'agents', or a manifest with 'name'"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.json", '{"name": "a",\n "tools": [\n}\n', "not valid JSON: Expecting value: line 3 column 1"),
        *(("m.json", text, "not valid JSON") for text in ("", "[" * 100_000 + "]" * 100_000, f"[{'9' * 5000}]")),
        ("m.json", b'{"name": "\xe9"}', "not valid JSON: 'utf-8' codec can't decode byte 0xe9 in position 10"),
        *(("m.json", text, FORMS) for text in ("3", '"text"', "null", "{}", '{"name": "a"}', '{"tools": []}')),
        ("m.json", '{"callsheet": 1}', FORMS),
        ("m.json", '[{"name": "a"}]', "entry 1 is not an object with 'tools' by server name"),
        ("t.json", '[{"tools": {"k": {"tools": 3}}}]', "server 'k' has no list of tools"),
        ("c.json", '{"callsheet": 2, "agents": []}', "unknown format 2; this program reads 1"),
        (
            "c.json",
            '{"callsheet": 1, "agents": [{"id": "a"}, {"id": "b", "tool": []}]}',
            "agents.1: Agent: tool: Extra inputs are not permitted",
        ),
        ("m.json", '{"name": " ", "tools": []}', "the agent's name is empty: give it one"),
    ],
    ids=range(17),
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CatalogError) as caught:
        load(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_folder_without_a_manifest_says_what_it_should_hold_or_the_first_reason(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"no manifest and no skill in this folder: it should hold one \.json file"):
        load(tmp_path)
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("[")
    with pytest.raises(CatalogError, match=r"none of its 2 files is a manifest; the first: .*a\.json: not a catalog"):
        load(tmp_path)


def test_one_of_the_two_toollinkos_files_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "core_tools.json").write_text("[]")
    with pytest.raises(CatalogError, match=r"regular_tools\.json: cannot be read: No such file"):
        load(tmp_path / "core_tools.json")


@pytest.mark.parametrize(
    "tools", [{"a": 1}, [3], [{"name": "x", "depends_on": [{"name": "y"}]}], [{"name": "x", "parameters": [{}]}]]
)
def test_a_toollinkos_file_of_another_form_is_refused(tmp_path: Path, tools: Any) -> None:
    (tmp_path / "core_tools.json").write_text("[]")
    (tmp_path / "regular_tools.json").write_text(json.dumps(tools))
    with pytest.raises(CatalogError, match=r"entry 1 of ToolLinkOS's tools does not have the published format"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["nowhere.json", "no/such/folder", "a\0b", "~nobody-of-this-name/x", "x" * 5000, ""])
def test_a_path_that_does_not_exist_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CatalogError, match=r"no catalog at|no manifest and no skill in this folder"):
        load(name)


def test_a_source_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(CatalogError, match=r"give an mcp\.json, a folder of manifests or module:object"):
        load()
    with pytest.raises(CatalogError, match="it is of type int"):
        load(cast("Catalog", 5))


def test_one_agent_in_two_places_names_both(tmp_path: Path) -> None:
    (file := tmp_path / "a.json").write_text('{"name": "same", "tools": []}')
    (tmp_path / "b.json").write_text('{"name": "same", "tools": []}')
    with pytest.raises(CatalogError, match=r"'same' is in .*a\.json and again in .*b\.json: rename or leave out one"):
        load(tmp_path)
    for other, called in ((Catalog(agents=(Agent(id="same"),)), "a catalog in memory"), (file, r".*a\.json")):
        with pytest.raises(CatalogError, match=rf"'same' is in .*a\.json and again in {called}"):
            load(file, other)


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": {}}, **more}


def test_a_manifest_is_one_agent_with_its_tools(tmp_path: Path) -> None:
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


def test_a_recording_of_a_server_is_read_as_a_manifest(tmp_path: Path) -> None:
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


def test_the_published_file_of_livemcpbench_is_read(tmp_path: Path) -> None:
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


def test_the_published_files_of_toollinkos_are_read(tmp_path: Path) -> None:
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


def test_an_empty_list_of_servers_is_an_empty_catalog(tmp_path: Path) -> None:
    for content in ([], {"mcpServers": {}}):
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


def test_a_tool_whose_id_belongs_to_another_node_is_left_out_alone() -> None:
    cases = [("b/ok", "a/b"), ("b", "a/b"), ("b/c/ok", "a/b"), ("io/ok", "a/io"), ("ok", "skills/ok")]
    for tool, other in cases:
        agent = other.partition("/")[0]
        invading, _ = agent_from_listing(agent, [entry(tool), entry("fine")])
        own, _ = agent_from_listing(other if agent == "a" else "web", [entry("ok"), entry("get")])
        loaded = load(SourceCatalog((invading, own), skills=() if agent == "a" else (Skill(name="ok"),)))
        assert list(loaded.catalog.tools) == [f"{agent}/fine", *(one.id for one in own.tools)]
        (problem,) = loaded.problems
        assert str(problem) == f"{agent}: tool {tool!r} is left out: '{agent}/{tool}' belongs to {other!r} by its name"


def test_slashes_in_names_keep_ids_apart() -> None:
    a, _ = agent_from_listing("a", [entry("b/ok"), entry("c/d/e")])
    b, _ = agent_from_listing("io.github.b/c", [entry("ok"), entry("files/read")])
    loaded = load(SourceCatalog((a, b)))
    assert loaded.problems == ()
    assert list(loaded.catalog.tools) == ["a/b/ok", "a/c/d/e", "io.github.b/c/ok", "io.github.b/c/files/read"]


def test_a_byte_order_mark_is_skipped_and_lone_surrogates_are_replaced(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("place", "agents", "tools", "edges"),
    [
        ("fleet/manifests", 27, 472, 0),
        ("benchmarks/livemcpbench/tools.json", 70, 527, 0),
        ("benchmarks/toollinkos", 1, 573, 1496),
        ("benchmarks/sealtools/catalog", 146, 4076, 0),
        ("benchmarks/metatool/catalog", 199, 199, 0),
    ],
)
def test_a_public_catalog_loads_whole(shared: Path, place: str, agents: int, tools: int, edges: int) -> None:
    if not (shared / place).exists():
        pytest.skip(f"{place} is not among the public data beside this checkout")
    loaded = load(shared / place)
    catalog = loaded.catalog
    assert (len(catalog.agents), len(catalog.tools)) == (agents, tools)
    assert sum(len(tool.depends_on) for tool in catalog.tools.values()) == edges
    assert not loaded.problems


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round-trip") / "callsheet.json"


@fuzzed(8)
@given(data=st.data())
def test_a_dumped_catalog_is_loaded_back_unchanged(
    data: st.DataObject, strategies: SimpleNamespace, place: Path
) -> None:
    catalog = data.draw(strategies.catalogs())
    place.write_text(dump(catalog), encoding="utf-8", newline="")
    loaded = load(place)
    assert loaded.catalog == catalog
    assert not loaded.problems
    assert dump(loaded.catalog) == dump(catalog)


@fuzzed(5)
@given(data=st.data())
def test_a_manifest_keeps_every_name_and_text(data: st.DataObject, strategies: SimpleNamespace, place: Path) -> None:
    name, description, schema = (data.draw(s) for s in (strategies.names, strategies.texts, strategies.objects))
    listing = [{"name": name, "description": description, "inputSchema": schema}]
    place.write_text(json.dumps({"name": name, "tools": listing}), encoding="utf-8")
    loaded = load(place)
    tool = loaded.catalog.agent(name).tools[0]
    assert (tool.name, tool.description) == (name, description)
    assert tool.input_schema == (schema or {"type": "object", "properties": {}})
