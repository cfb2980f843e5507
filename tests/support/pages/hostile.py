"""A catalog every text of which tries to become markup."""

from __future__ import annotations

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Provenance, Tool

BREAKOUT = (
    "</script></title></style></svg>--><img src=x onerror=\"document.title='owned'\"><script>owned()</script>{{data}}"
)


def hostile_catalog() -> Catalog:
    """One agent with two tools."""
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
