"""How soon the map of the page is there, and how it moves: in Chromium without a graphics card."""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sets.generated import generated_catalog
from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Provenance

SIZES, LOADS = (30, 1_000, 10_000), 5
COLUMNS = ("tools", "dependencies", "from the address to the map, ms", "of it the layout, ms", "frames/s", "zoomed in")
_ABOUT = (
    "The first view of the page, 1440 by 900 pixels, in Chromium without a graphics card: from the navigation to the "
    f"first picture of the whole map, median of {LOADS} loads; then frames while it is dragged, at most 60 a second, "
    "with all in view and after four steps of zoom. The catalog is generated, with one dependency a tool on average, "
    "two of three inferred"
)
_SUPPORT = Path(__file__).parents[2] / "tests" / "support" / "pages"
_PAINTED = "performance.getEntriesByName('callsheet-map').length && document.querySelector('.map canvas')?.width > 300"
_SINCE = """new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"""
_LAYOUT = "performance.getEntriesByName('callsheet-map')[0].duration"
_FRAMES = """new Promise((done) => {
  const canvas = document.querySelector(".map canvas"), box = canvas.getBoundingClientRect(), began = performance.now();
  const at = (n) => ({ bubbles: true, view: window, clientX: box.left + 300 + 4 * n, clientY: box.top + 200 + n });
  let n = 0;
  canvas.dispatchEvent(new MouseEvent("mousedown", at(0)));
  const move = () => {
    window.dispatchEvent(new MouseEvent("mousemove", at(++n)));
    if (n < 90) { requestAnimationFrame(move); return; }
    window.dispatchEvent(new MouseEvent("mouseup", at(n)));
    done((1000 * n) / (performance.now() - began));
  };
  requestAnimationFrame(move);
})"""


def measure(say: Callable[[str], None], *, quick: bool = False) -> dict[str, object]:
    """The table, as the body of a results file.

    Raises:
        RuntimeError: There is no Chromium.
    """
    sys.path.append(str(_SUPPORT))
    from chromium import opened
    from explored import explorer
    from explored_page import serving

    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for browser in opened(Path(folder)):
            browser.window(1440, 900)
            for tools in SIZES[:1] if quick else SIZES:
                say(f"page: {tools:,} tools")
                catalog = _linked(generated_catalog(tools))
                edges = sum(len(tool.depends_on) for tool in catalog.tools.values())
                with serving(explorer(catalog)) as address:
                    rows.append([f"{tools:,}", f"{edges:,}", *_row(browser, address, 1 if quick else LOADS)])
    return {"name": "page", "about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def _row(browser: Any, address: str, loads: int) -> Sequence[str]:
    shown, layouts = [], []
    for _ in range(loads):
        browser.show(address)
        browser.wait(_PAINTED)
        shown.append(browser.run(_SINCE))
        layouts.append(browser.run(_LAYOUT))
    whole = browser.run(_FRAMES)
    browser.run("for (let i = 0; i < 4; i += 1) document.querySelector('[aria-label=\"Zoom in\"]').click()")
    near = browser.run(_FRAMES)
    return [f"{statistics.median(shown):.0f}", f"{statistics.median(layouts):.0f}", f"{whole:.0f}", f"{near:.0f}"]


def _linked(catalog: Catalog, seed: int = 0) -> Catalog:
    """The same catalog, where a tool needs one other on average, often of its own agent."""
    chance, names = random.Random(seed), list(catalog.tools)

    def needs(agent: Agent, tool: str) -> tuple[Dependency, ...]:
        own = [other.id for other in agent.tools if other.id != tool]
        found = {
            chance.choice(own if own and chance.random() < 0.7 else names) for _ in range(chance.choice((0, 1, 2)))
        }
        origins = (Provenance.DECLARED, Provenance.PROPOSED, Provenance.PROPOSED)
        return tuple(
            Dependency(tool=other, kind=DependencyKind.TOOL_DIRECTLY, provenance=chance.choice(origins), confidence=0.8)
            for other in sorted(found - {tool})
        )

    agents = [
        agent.model_copy(
            update={
                "tools": tuple(tool.model_copy(update={"depends_on": needs(agent, tool.id)}) for tool in agent.tools)
            }
        )
        for agent in catalog.agents
    ]
    return Catalog(agents=tuple(agents))
