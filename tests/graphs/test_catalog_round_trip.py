from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from callsheet.graphs import Agent, Catalog, CatalogError, Dependency, DependencyKind, Provenance, Tool, dump, load

names = st.one_of(
    st.text(min_size=1, max_size=8).filter(lambda text: any(not c.isspace() for c in text)),
    st.sampled_from(
        [
            "a",
            "a/b",
            "b",
            "b/c",
            'say "hi"',
            "it's",
            "\\",
            "工具",
            "e\u0301",
            "👩‍👩‍👧",
            "a\u2028b",
            "\x00",
            "../x",
            " x ",
        ]
    ),
)
texts = st.text(max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)


@st.composite
def tools(draw: st.DrawFn, agent: str) -> tuple[Tool, ...]:
    return tuple(
        Tool(
            agent=agent,
            name=name,
            title=draw(texts),
            description=draw(texts),
            input_schema=draw(objects),
            output_schema=draw(st.none() | objects),
            annotations=draw(objects),
            core=draw(st.booleans()),
            capabilities=tuple(draw(st.lists(names, max_size=2, unique=True))),
        )
        for name in draw(st.lists(names, max_size=3, unique=True))
    )


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    ids = draw(st.lists(names, max_size=3, unique=True))
    agents = [Agent(id=i, name=draw(texts), instructions=draw(texts), tools=draw(tools(i))) for i in ids]
    known = [tool.id for agent in agents for tool in agent.tools]
    edges = st.builds(
        Dependency,
        tool=st.sampled_from(known or ["-"]),
        kind=st.sampled_from(DependencyKind),
        parameter=st.none() | texts,
        reason=texts,
        provenance=st.sampled_from(Provenance),
        confidence=st.floats(0, 1),
        count=st.integers(0, 10**9),
    )

    def joined(tool: Tool) -> Tool:
        return tool.model_copy(update={"depends_on": tuple(draw(st.lists(edges, max_size=2)))})

    whole = [agent.model_copy(update={"tools": tuple(map(joined, agent.tools))}) for agent in agents]
    try:
        return Catalog(agents=tuple(whole))
    except CatalogError:
        reject()  # names with slashes have made two nodes one


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round-trip") / "callsheet.json"


@settings(max_examples=50, deadline=None)
@given(catalog=catalogs())
def test_what_is_dumped_is_loaded_back_unchanged(catalog: Catalog, place: Path) -> None:
    place.write_text(dump(catalog), encoding="utf-8", newline="")
    loaded = load(place)
    assert loaded.catalog == catalog
    assert not loaded.problems
    assert dump(loaded.catalog) == dump(catalog)


@settings(max_examples=30, deadline=None)
@given(name=names, description=texts, schema=objects)
def test_a_manifest_keeps_every_name_and_text(
    name: str, description: str, schema: dict[str, object], place: Path
) -> None:
    listing = [{"name": name, "description": description, "inputSchema": schema}]
    place.write_text(json.dumps({"name": name, "tools": listing}), encoding="utf-8")
    loaded = load(place)
    tool = loaded.catalog.agent(name).tools[0]
    assert (tool.name, tool.description) == (name, description)
    assert tool.input_schema == (schema or {"type": "object", "properties": {}})


def test_the_form_says_its_version(catalog: Catalog) -> None:
    assert json.loads(dump(catalog))["callsheet"] == 1


def test_the_sample_catalog_survives(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "callsheet.json").write_text(dump(catalog), encoding="utf-8")
    assert load(tmp_path / "callsheet.json").catalog == catalog
