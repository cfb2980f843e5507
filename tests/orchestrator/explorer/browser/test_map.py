"""The map in a real browser: where skills stand, and how much of a narrow window it uses."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from callsheet.graphs import Agent, Catalog, Tool
from chromium import Browser
from explored import explorer

pytestmark = pytest.mark.server
Show = Callable[..., Browser]

# The share of the canvas, in width and height, over which the discs stand when all of them are shown.
USED = """(async () => {
  const { known } = await import("./map.js"), { discs } = (await known()).world;
  const { width, height } = document.querySelector(".map canvas");
  const across = Math.max(...discs.map((one) => one.x + one.r)) - Math.min(...discs.map((one) => one.x - one.r));
  const down = Math.max(...discs.map((one) => one.y + one.r)) - Math.min(...discs.map((one) => one.y - one.r)) + 10;
  const k = Math.min((width - 40) / across, (height - 40) / down);
  return [(k * across) / width, (k * down) / height];
})()"""


def test_a_skill_of_a_server_stands_with_the_tools_of_its_agent(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog))
    told = {
        "agents": ["ops", "crm"],
        "tools": [["restart", 0, 0], ["find", 1, 0]],
        "edges": [],
        "skills": [["skills/trip", [1], None], ["ops/skill:post-mortem", [], 0]],
        "labels": {},
    }
    found = page.run(f"""import("./map.js").then(({{ laidOut }}) => laidOut({json.dumps(told)}).discs
        .map((disc) => [disc.label, disc.skill, disc.tools.map((one) => [one.name, Boolean(one.skill)]).sort()]))""")
    assert found == [
        ["ops", False, [["restart", False], ["skill:post-mortem", True]]],
        ["crm", False, [["find", False]]],
        ["skills/trip", True, [["skills/trip", True]]],
    ]


def test_the_map_uses_most_of_the_window_of_a_phone(show: Show) -> None:
    sizes = [1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 10, 12, 14, 16, 16, 20, 24, 40, 120]
    agents = [
        Agent(id=f"a{n}", tools=tuple(Tool(agent=f"a{n}", name=f"does_{i}") for i in range(size)))
        for n, size in enumerate(sizes)
    ]
    page = show(explorer(Catalog(agents=tuple(agents))), width=390)
    page.wait("document.querySelector('.map canvas')?.width > 300")
    across, down = page.run(USED)
    assert min(across, down) > 0.7
