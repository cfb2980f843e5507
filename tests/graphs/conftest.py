"""Valid catalogs of every sort, as hypothesis strategies."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import reject, strategies as st

from callsheet.graphs import Agent, Catalog, CatalogError, Dependency, DependencyKind, Provenance, Tool

HOSTILE = [
    *'a a/b b b/c a.b it\'s """ \\ \\u0041 {}|^`<> a%2Fb #; 工具 e\u0301 .. ../x end'.split(),
    *('say "hi"', "👩‍👩‍👧", "a\u2028b", "a\r\nb", "\x00", "\ufffe", "\U0010ffff", " x "),
]

names = st.one_of(
    st.text(min_size=1, max_size=8).filter(lambda text: any(not c.isspace() for c in text)), st.sampled_from(HOSTILE)
)
texts = st.text(max_size=20) | st.sampled_from(HOSTILE)
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
types = st.sampled_from(["string", "integer", "array", "object"])
fields = st.fixed_dictionaries(
    {},
    optional={
        "type": types | st.lists(types, max_size=2),
        "description": texts,
        "enum": st.lists(values, max_size=3),
        "format": st.sampled_from(["date-time", "uri"]),
        "default": values,
        "items": objects,
    },
)
properties = st.dictionaries(st.sampled_from(["place", "unit", "", *HOSTILE]), fields, max_size=3)
schemas = objects | st.builds(
    lambda known, needed: {"type": "object", "properties": known, "required": needed},
    properties,
    st.lists(st.sampled_from(["place", "unit"]), max_size=2),
)
hints = st.dictionaries(
    st.sampled_from(["readOnlyHint", "destructiveHint", "title"]), st.booleans() | texts, max_size=2
)


@st.composite
def tools(draw: st.DrawFn, agent: str) -> tuple[Tool, ...]:
    return tuple(
        Tool(
            agent=agent,
            name=name,
            title=draw(texts),
            description=draw(texts),
            input_schema=draw(schemas),
            output_schema=draw(st.none() | schemas),
            annotations=draw(objects | hints),
            core=draw(st.booleans()),
            capabilities=tuple(draw(st.lists(names, max_size=3))),
        )
        for name in draw(st.lists(names, max_size=3, unique=True))
    )


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    ids = draw(st.lists(names, max_size=3, unique=True))
    agents = [
        Agent(
            id=i,
            name=draw(texts),
            description=draw(texts),
            instructions=draw(texts),
            category=draw(texts),
            tools=draw(tools(i)),
        )
        for i in ids
    ]
    known = [tool.id for agent in agents for tool in agent.tools]
    edges = st.builds(
        Dependency,
        tool=st.sampled_from(known or ["-"]),
        kind=st.sampled_from(DependencyKind),
        parameter=st.none() | texts,
        reason=texts,
        provenance=st.sampled_from(Provenance),
        confidence=st.floats(0, 1),
        count=st.integers(0, 10**20),
    )

    def joined(tool: Tool) -> Tool:
        return tool.model_copy(update={"depends_on": tuple(draw(st.lists(edges, max_size=2)))})

    whole = [agent.model_copy(update={"tools": tuple(map(joined, agent.tools))}) for agent in agents]
    try:
        return Catalog(agents=tuple(whole))
    except CatalogError:
        reject()  # names with slashes have made two nodes one


@pytest.fixture(scope="session")
def strategies() -> SimpleNamespace:
    """``catalogs()``, ``names``, ``texts`` and ``objects``, to be drawn from."""
    return SimpleNamespace(catalogs=catalogs, names=names, texts=texts, objects=objects)
