from __future__ import annotations

import pytest

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Provenance, Tool

BREAKOUT = (
    "</script></title></style></svg>--><img src=x onerror=\"document.title='owned'\"><script>owned()</script>{{data}}"
)


@pytest.fixture
def hostile() -> Catalog:
    """Every text of it tries to become markup."""
    schema = {
        "type": "object",
        "properties": {BREAKOUT: {"type": BREAKOUT, "description": BREAKOUT, "enum": [BREAKOUT]}},
    }
    edge = Dependency(tool=f"{BREAKOUT}/b", kind=DependencyKind.TOOL_DIRECTLY, parameter=BREAKOUT, reason=BREAKOUT)
    tools = (
        Tool(
            agent=BREAKOUT,
            name=BREAKOUT,
            title=BREAKOUT,
            description=f"{BREAKOUT}\x00\x1b[31m\ufffe\u202e{BREAKOUT}",
            input_schema=schema,
            output_schema=schema,
            annotations={BREAKOUT: BREAKOUT},
            capabilities=(BREAKOUT,),
            depends_on=(edge, edge.model_copy(update={"provenance": Provenance.PROPOSED, "confidence": 0.5})),
        ),
        Tool(agent=BREAKOUT, name="b", core=True),
    )
    said = {"name": BREAKOUT, "description": BREAKOUT, "instructions": BREAKOUT, "category": BREAKOUT}
    return Catalog(agents=(Agent(id=BREAKOUT, tools=tools, **said),))


@pytest.fixture
def large() -> Catalog:
    """Three agents with 500 tools; one of them leans on a few core tools, and has tools that belong together."""

    def tool(agent: str, i: int) -> Tool:
        needs = [f"big/core_{i % 3}"] if agent == "big" and i > 2 else []
        if agent == "big" and i > 10 and i % 10:
            needs.append(f"big/shop{i // 10}_{i // 10 * 10}")
        name = f"core_{i}" if agent == "big" and i < 3 else f"shop{i // 10}_{i}" if agent == "big" else f"do_{i}"
        edges = tuple(Dependency(tool=target, kind=DependencyKind.TOOL_DIRECTLY) for target in needs)
        return Tool(agent=agent, name=name, core=name.startswith("core"), depends_on=edges)

    sizes = {"big": 300, "middle": 150, "small": 50}
    return Catalog(agents=tuple(Agent(id=a, tools=tuple(tool(a, i) for i in range(n))) for a, n in sizes.items()))
