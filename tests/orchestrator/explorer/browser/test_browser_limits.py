"""The page in a real browser, at its limits: hostile texts, 10,000 tools, 390 pixels, light and dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.latency import generated_catalog, generated_queries
from callsheet.graphs import Catalog
from chromium import Browser
from explored import explorer
from explored_page import heading
from hostile import BREAKOUT, hostile_catalog
from kept_runs import USED, Kept

pytestmark = pytest.mark.server
Show = Callable[..., Browser]

# The least contrast of any text with what is behind it (WCAG 2.2, 1.4.3), and the text.
CONTRAST = """(() => {
  const linear = (v) => v / 255 <= 0.03928 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4;
  const light = (c) => { const [r, g, b] = c.map(linear); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let least = [99, ""];
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !e.checkVisibility() || e.closest("svg, script, noscript")) continue;
    const a = light(parts(getComputedStyle(e).color).slice(0, 3)), b = light(behind(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < least[0]) least = [contrast, walker.currentNode.data];
  }
  return least;
})()"""

# How many milliseconds pass from a question to the first result that is drawn.
SEARCHED = """new Promise((found) => {
  const input = document.getElementById("q"), results = document.querySelector(".results");
  results.querySelector(".agents")?.remove();
  input.value = %s;
  const began = performance.now();
  new MutationObserver((_, observer) => {
    if (!results.querySelector(".agents a")) return;
    observer.disconnect();
    requestAnimationFrame(() => found(performance.now() - began));
  }).observe(results, { childList: true, subtree: true });
  input.form.requestSubmit();
})"""


def test_hostile_texts_do_nothing_but_stand_there(show: Show) -> None:
    page = show(explorer(hostile_catalog()))
    page.wait("document.querySelector('.map canvas')")
    page.run("document.getElementById('map-words').focus()")
    page.write("<img")
    page.wait("document.querySelector('.hits a')?.textContent.includes('<img src=x onerror=')")
    names = "{ agents: ['constructor', '__proto__'], tools: [], edges: [], skills: [], labels: {} }"
    placed = f"import('./map.js').then(({{ laidOut }}) => laidOut({names}).discs.map((disc) => disc.label))"
    assert page.run(placed) == ["constructor", "__proto__"]
    page.run("location.hash = '#/search?q=%3Cimg%20src%3Dx%3E'")
    page.wait("document.querySelector('.agents a')")
    page.run("document.querySelector('.agents h3 a').click()")
    heading(page, BREAKOUT)
    page.run("document.querySelector('.at-below a').click()")
    heading(page, f"{BREAKOUT}/{BREAKOUT}")
    page.wait("document.querySelector('.findings li')")
    said = page.run("document.querySelector('.details').textContent")
    assert said.count("<img src=x onerror=") > 8
    assert "\\u202e" in said
    assert page.run("document.querySelectorAll('main img, script').length") == 1
    assert "owned" not in page.run("document.title").split("<script>")[0].replace("'owned'", "")
    with pytest.raises(AssertionError, match="TrustedHTML"):
        page.run("document.body.innerHTML = '<p>'")
    assert [complaint for complaint in page.complaints if "TrustedHTML" not in complaint] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_it_can_be_read_in_any_width_in_light_and_in_dark(show: Show, catalog: Catalog, width: int) -> None:
    app = explorer(catalog, runs=Kept([USED]))
    for at, ready in (
        ("#/runs?id=t", ".steps li"),
        ("", ".map canvas"),
        ("#/search", ".everybody a"),
        ("#/search?q=weather+forecast", ".agents a"),
        ("#/search?node=weather/forecast", ".findings p:not(.small), .findings li"),
    ):
        for dark in (False, True):
            page = show(app, at, width, dark=dark)
            page.wait(f"document.querySelector({ready!r})")
            assert page.run("document.documentElement.scrollWidth") <= width, at
            least, text = page.run(CONTRAST)
            assert least >= 4.5, (at, dark, text)
            assert page.complaints == []
    small = "Math.min(...[...document.querySelectorAll('main *')].map((e) => parseFloat(getComputedStyle(e).fontSize)))"
    assert page.run(small) >= 12


# How many pixels of the map are not empty, and in how many colours.
PAINTED = """(() => {
  const canvas = document.querySelector(".map canvas");
  const data = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const painted = data.filter(Boolean);
  return [painted.length / data.length, new Set(painted).size];
})()"""


def test_the_map_of_10000_tools_is_painted_searched_and_moved_by_keys(show: Show) -> None:
    page = show(explorer(generated_catalog(10_000)))
    page.wait("performance.getEntriesByName('callsheet-map').length")
    page.wait("document.querySelector('.map canvas')?.width > 300")
    page.wait(f"{PAINTED}[0] > 0.02")
    share, colours = page.run(PAINTED)
    assert (share < 0.9, colours > 3) == (True, True)
    page.run("document.querySelector('.map canvas').focus()")
    before = page.run("document.querySelector('.map canvas').toDataURL()")
    page.press("+")
    page.wait(f"document.querySelector('.map canvas').toDataURL() !== {before!r}")
    page.run("document.getElementById('map-words').focus()")
    page.write("archive 7")
    page.wait("document.querySelectorAll('.hits a').length === 8")
    assert page.run("document.getElementById('status').textContent").endswith("tools found")
    page.press("Tab")
    page.press("Tab")
    wanted = page.run("document.querySelector('.hits a').dataset.id")
    page.run("document.querySelector('.hits a').click()")
    heading(page, wanted)
    assert [complaint for complaint in page.complaints if "readback" not in complaint] == []


def test_in_a_narrow_window_what_is_chosen_takes_the_place_of_what_was_found(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog), "#/search?q=weather+forecast", 390)
    page.wait("document.querySelector('.tools a')")
    assert page.run("document.querySelector('.details').childElementCount") == 0
    page.run("document.querySelector('.tools a').click()")
    heading(page, "weather/forecast")
    visible = "[...document.querySelectorAll('.results, .details')].map((e) => e.checkVisibility())"
    assert page.run(visible) == [False, True]
    page.run("document.querySelector('.back a').click()")
    page.wait("document.querySelector('.results').checkVisibility()")


@pytest.mark.slow
def test_with_10000_tools_the_first_result_is_there_about_as_soon_as_with_100(show: Show) -> None:
    """From the key to the first result on the page; the best of some, for the machine may have other work."""
    took = {}
    for tools in (100, 10_000):
        page = show(explorer(generated_catalog(tools)), "#/search")
        assert f"{tools:,} tools" in page.run("document.getElementById('counts').textContent")
        took[tools] = [page.run(SEARCHED % repr(question)) for question in generated_queries(5)]
        assert page.complaints == []
    assert min(took[10_000]) < 10 * min(took[100]), took
