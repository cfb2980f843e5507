from __future__ import annotations

import pytest

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Tool
from hostile import hostile_catalog


@pytest.fixture
def hostile() -> Catalog:
    """Every text of it tries to become markup."""
    return hostile_catalog()


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
