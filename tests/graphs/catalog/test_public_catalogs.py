"""Real catalogs, where they lie beside the checkout: 27 recorded servers and the benchmarks' own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.graphs import load


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
