"""The page in a real browser: search, walk, keyboard, screen reader, runs, signing in; and at its limits."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from benchmarks.latency import generated_catalog, generated_queries
from callsheet.agents.calls.tool_result import KeptResults
from callsheet.graphs import Agent, Catalog, Policy, Tool
from callsheet.orchestrator.state import ending
from chromium import Browser
from explored import Authenticated, explorer
from explored_page import heading, saved
from hostile import BREAKOUT, hostile_catalog
from kept_runs import ASKING, ENDED, RESULT, REVISED, STEPS, USED, Kept, moment, with_values

pytestmark = pytest.mark.server
Show = Callable[..., Browser]
FOCUS = "document.activeElement"


def test_a_question_gives_ranked_tools_with_reasons_and_the_best_ones_neighbourhood(
    show: Show, catalog: Catalog
) -> None:
    page = show(explorer(catalog), "#/search")
    page.run("document.getElementById('q').focus()")
    page.write("weather forecast for a place")
    page.press("Enter")
    heading(page, "weather/forecast")
    assert page.run("location.hash") == "#/search?q=weather+forecast+for+a+place"
    assert page.run("document.querySelector('.agents h3 a').textContent") == "weather"
    first, second = page.run(
        "[...document.querySelectorAll('.agents .tools .why')].slice(0, 2).map((e) => e.textContent)"
    )
    assert first.startswith("Why: fits well: score ")
    assert second == "Required by weather/forecast"
    assert page.run("document.getElementById('status').textContent").endswith("First: weather/forecast")
    assert page.run(f"{FOCUS}.id") == "q"
    page.run("document.querySelector('.trace').open = true")
    assert "How likely something fits: 0." in page.run("document.querySelector('.trace').innerText")
    assert page.complaints == []


def test_the_graph_can_be_walked_and_the_way_back_too(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog), "#/search?node=weather/forecast")
    heading(page, "weather/forecast")
    lanes = page.run("[...document.querySelectorAll('.lane')].map((e) => e.innerText.split('\\n').slice(0, 2))")
    assert ["Owner", "weather"] in lanes
    assert ["Needed by", "travel/plan_trip"] in lanes
    assert ["Needs", "maps/find_place"] in lanes
    edges = "[...document.querySelectorAll('.lines .edge')].map((e) => e.classList[1])"
    assert {"owner", "td"} <= set(page.run(edges))
    page.run("document.querySelector('.at-before a').click()")
    heading(page, "travel/plan_trip")
    assert "may need the tool" in page.run("document.querySelector('.at-after').innerText")
    page.run("document.querySelector('.at-above a').click()")
    heading(page, "travel")
    page.run("history.back()")
    heading(page, "travel/plan_trip")
    page.run("document.querySelector('.at-below a').click()")
    page.wait("document.querySelector('.details .kind')?.textContent === 'capability'")
    assert page.complaints == []


def test_everything_can_be_done_with_the_keyboard_alone(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog), "#/search")
    page.press("Tab")
    assert page.run(f"{FOCUS}.textContent") == "Skip to the content"
    assert page.run(f"{FOCUS}.getBoundingClientRect().top") >= 0
    page.press("Enter")
    assert page.run(f"{FOCUS}.id") == "main"
    page.press("/")
    assert page.run(f"{FOCUS}.id") == "q"
    page.write("weather forecast for a place")
    page.press("Enter")
    heading(page, "weather/forecast")
    reached = []
    while not reached or reached[-1] != "weather/forecast":
        page.press("Tab")
        reached.append(page.run(f"{FOCUS}.textContent || {FOCUS}.id"))
        assert page.run(f"getComputedStyle({FOCUS}).outlineStyle") == "solid", reached
        assert len(reached) < 10, reached
    assert reached == ["Find", "agents", "tools", "weather", "weather/forecast"]
    page.press("Enter")
    page.wait(f"{FOCUS}.matches('.details h2')")
    walked = ""
    while walked != "maps/find_place":
        page.press("Tab")
        walked = page.run(f"{FOCUS}.textContent")
        assert page.run(f"{FOCUS}.closest('.details') !== null"), walked
    page.press("Enter")
    page.wait(f"{FOCUS}.textContent === 'maps/find_place' && {FOCUS}.matches('h2')")
    page.press("Tab", shift=True)
    page.press("Enter")
    page.wait(f"{FOCUS}.dataset.id === 'maps/find_place' && {FOCUS}.closest('.results') !== null")
    assert page.complaints == []


def test_a_screen_reader_is_told_what_everything_is(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog), "#/search?q=weather+forecast&node=weather/forecast")
    heading(page, "weather/forecast")
    page.wait("document.querySelector('.findings h3 + *:not(.small)')")
    heard = page.heard()
    for known in (
        ("banner", ""),
        ("navigation", "Views"),
        ("main", ""),
        ("search", ""),
        ("searchbox", "What do you want done?"),
        ("spinbutton", "agents"),
        ("region", "What was found"),
        ("region", "Details"),
        ("heading", "weather/forecast"),
        ("heading", "Needs"),
        ("link", "maps/find_place"),
    ):
        assert known in heard, (known, [one for one in heard if one[0] == known[0]])
    assert ("status", "") in [(role, "") for role, _ in heard]
    controls = ("link", "button", "searchbox", "spinbutton")
    nameless = [role for role, name in heard if role in controls and not name]
    assert nameless == []
    # Browsers differ in whether a name keeps the blanks at its label's ends: there are none.
    labels = page.run("[...document.querySelectorAll('label')].map((label) => label.textContent)")
    assert labels == ["What do you want done?", "agents", "tools"]
    assert not {"image", "img"} & {role for role, _ in heard}


def test_a_run_is_shown_with_what_it_used_and_the_requests_before_it(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([USED, ASKING, REVISED])), "#/runs")
    page.wait("document.querySelector('.threads a')")
    page.run("document.querySelector('.threads a').click()")
    page.wait("document.querySelector('.run-models tbody tr')")
    assert page.run(f"{FOCUS}.textContent") == "request b"
    page.run("document.querySelector('.steps details').open = true")
    said = page.run("document.querySelector('.thread > .run').innerText")
    total = "3 model calls, 6,000 input tokens (4,000 cached), 430 output tokens"
    for part in (
        "by rules",
        "1 call, 0.25 s",
        "5,540 tokens",
        "units/convert_length",
        "used by a",
        "waits its turn",
        "after 1",
        "4.8 km",
        total,
    ):
        assert part in said
    rows = page.run("[...document.querySelectorAll('.run-models tr')].map((row) => row.innerText.split('\\t'))")
    assert [row[:2] for row in rows] == [["role", "calls"], ["planner", "1"], ["worker", "2"]]
    # The requests before this one are asked for after it is shown.
    page.wait("document.querySelectorAll('.earlier details').length === 2")
    page.run("document.querySelectorAll('.earlier details').forEach((one) => { one.open = true; })")
    page.wait("document.querySelector('.earlier .run-changes li')")
    earlier = page.run("document.querySelector('.earlier').innerText")
    assert "Waits for you" in earlier
    assert "After wave 1: added 3; dropped 2: the file is <b>missing</b>" in earlier
    assert total in saved(page, "HTML page")
    assert page.complaints == []


@pytest.mark.parametrize("width", [390, 1440])
def test_the_answer_stands_above_the_plan_and_the_calls(show: Show, catalog: Catalog, width: int) -> None:
    page = show(explorer(catalog, runs=Kept([ENDED])), "#/runs?id=t")
    page.window(width)
    page.wait("document.querySelector('.run-answer .answer-text')")
    top = "document.querySelector('.run-{}').getBoundingClientRect().top"
    tops = [page.run(top.format(part)) for part in ("head", "answer", "picture", "steps")]
    page.window(1400)
    assert tops == sorted(tops)
    assert page.complaints == []


def test_something_moves_while_a_plan_is_made(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([ENDED])), "#/runs?id=t")
    page.wait("document.querySelector('.run-answer')")
    page.run("""(async () => {
        const { article } = await import("./runs/run.js"), { told } = await import("./runs/events.js");
        const one = article(), run = { ...told([]), request: "r", status: "running" };
        document.body.append(one.element);
        one.show(run);
        window.moves = getComputedStyle(one.element.querySelector(".run-planning .pulse")).animationName;
        one.show({ ...run, status: "done", answer: "a" });
        window.still = one.element.querySelector(".run-planning").hidden;
    })()""")
    page.wait("window.still !== undefined")
    assert (page.run("window.moves"), page.run("window.still")) == ("pulse", True)


@pytest.mark.parametrize("width", [340, 1200])
def test_texts_stay_inside_the_boxes_of_a_plan(show: Show, catalog: Catalog, width: int) -> None:
    page = show(explorer(catalog, runs=Kept([ENDED])), "#/runs?id=t")
    page.wait("document.querySelector('.run-answer')")
    texts = ["WWWWW MMMMM " * 20, "W" * 200, "會議室預訂 " * 30, "short", "illi " * 60]
    page.run(f"""(async () => {{
        const {{ dag }} = await import("./runs/plan.js");
        const call = (text, running) => (
            {{ tool: {{ id: text, label: `agent_of_wide_names/${{text}}` }}, running, seconds: 123.4, error: "" }});
        const steps = {json.dumps(texts)}.map((text, i) => (
            {{ id: String(i + 1), text, depends_on: [], status: "done", picked: [],
               calls: [call(text.replaceAll(" ", "_"), false), call("WMWMWMWM", true)] }}));
        const picture = dag({{ steps, questions: [], answer: "", status: "done" }}, {width}, () => {{}});
        picture.id = "drawn";
        document.querySelector(".run").append(picture);
    }})()""")
    page.wait("document.getElementById('drawn')")
    boxes = page.run("""[...document.querySelectorAll("#drawn .step")].map((step) => {
        const box = step.querySelector(".step-box").getBBox();
        return [...step.querySelectorAll("text")].map((text) => {
            const at = text.getBBox();
            return [text.textContent, at.x - box.x, box.x + box.width - at.x - at.width, box.height - at.y - at.height];
        });
    })""")
    told = [text for box in boxes for text in box]
    assert len(boxes) == len(texts)
    assert len(told) >= 4 * len(texts)
    assert [text for text in told if min(text[1:]) < 0] == []
    # What is not shown is marked.
    short = boxes.pop(3)
    assert short[0][0] == "short"
    assert all(any("\N{HORIZONTAL ELLIPSIS}" in text for text, *_ in box) for box in boxes)
    assert page.complaints == []


@pytest.mark.parametrize(("address", "said"), [
    ("#/runs/nope", 'There is no page "runs/nope".'), ("#/bogus", 'There is no page "bogus".'),
    ("#/runs?id=nope", "there is no thread 'nope' that you may see."),
])  # fmt: skip
def test_an_address_that_shows_nothing_says_so(show: Show, catalog: Catalog, address: str, said: str) -> None:
    page = show(explorer(catalog, runs=Kept([])), address)
    page.wait(f"document.getElementById('main').innerText.includes({said!r})")
    assert page.run("document.querySelector('.composer')?.checkVisibility() ?? false") is False


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_a_picture_is_shown_beside_its_call_and_in_the_saved_page(show: Show, catalog: Catalog) -> None:
    stored = KeptResults().of("run", "units", "draw")(base64.b64decode(PIXEL), "image/png")
    assert stored is not None
    call: Any = {**RESULT["calls"][0], "files": [stored.path]}  # type: ignore[index]
    ended = with_values(ENDED, results={"1": {**RESULT, "calls": [call]}})
    page = show(explorer(catalog, runs=Kept([ended])), "#/runs?id=t")
    page.wait("document.querySelector('.calls img')?.naturalWidth === 1")
    assert page.run("document.querySelector('.calls img').alt").endswith(".png")
    assert f"data:image/png;base64,{PIXEL}" in saved(page, "HTML page")
    assert page.complaints == []


FAILED = {**RESULT, "status": "failed", "error": "no such file"}
CLASS = "getComputedStyle(document.querySelector('.thread > .run .badge')).color"


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([RESULT, RESULT], "Done"),
        ([RESULT, FAILED], "Partly done"),
        ([FAILED, {**RESULT, "status": "skipped"}], "Failed"),
        ([{**RESULT, "status": "needs_input"}], "Not done"),
    ],
)
def test_a_run_says_how_it_ended_and_only_one_that_was_done_is_green(
    show: Show, catalog: Catalog, results: list[Any], said: str
) -> None:
    by_step = dict(zip("12", results, strict=False))
    how = ending({"steps": STEPS}, by_step)
    ended = moment("b", 9, results=by_step, ended=how, messages=ENDED.values["messages"])
    page = show(explorer(catalog, runs=Kept([ended])), "#/runs?id=t")
    page.wait("document.querySelectorAll('.steps > li').length === 2")
    assert page.run("document.querySelector('.thread > .run .badge').textContent") == said
    colours = {"Done": "good", "Not done": "faint"}
    page.run("document.body.append(document.createElement('i'))")
    page.run(f"document.querySelector('i').style.color = 'var(--{colours.get(said, 'bad')})'")
    wanted = page.run("getComputedStyle(document.querySelector('i')).color")
    assert page.run(CLASS) == wanted


def test_what_runs_and_what_waits_have_one_colour_that_nothing_else_has(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([ASKING])), "#/runs?id=t")
    page.wait("document.querySelector('.card')")
    waits = page.run(CLASS)
    drawn = """(kind, name) => { const one = document.createElementNS("http://www.w3.org/2000/svg", "rect");
        one.setAttribute("class", `${kind} ${name}`); document.querySelector(".dag").append(one);
        const style = getComputedStyle(one); return kind === "flow" ? style.stroke : style.fill; }"""
    for kind in ("flow", "bar-of"):
        assert page.run(f"({drawn})({kind!r}, 'running')") == waits
        assert page.run(f"({drawn})({kind!r}, 'done')") != waits
    assert waits not in page.run("[...document.querySelectorAll('a, button')].map((e) => getComputedStyle(e).color)")


def test_times_are_written_as_people_write_them(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([ENDED])), "#/runs")
    page.wait("document.querySelector('.threads time')")
    assert re.fullmatch(
        r"\w+ 1 Jan, \d+:00( [AP]M)?|1 Jan 2026, .*", page.run("document.querySelector('time').textContent")
    )
    ago = "[0, 1, 2].map((n) => run.when(new Date(Date.now() - n * 864e5)).textContent)"
    today, yesterday, before = page.run(f"import('./runs/run.js').then((run) => {ago})")
    assert today.startswith("today, ")
    assert yesterday.startswith("yesterday, ")
    assert re.match(r"\w{3} \d+ \w+, \d+:\d\d|\d+ \w+ \d{4}", before)


# How many names are shown at a zoom, how many lie over another or over a point, and how many discs have none.
NAMED = """(async () => {
  const { known, names } = await import("./map.js"), { zoomIdentity } = await import("./library/graph.js");
  const { discs, points } = (await known()).world, { width, height } = document.querySelector(".map canvas");
  const ink = document.createElement("canvas").getContext("2d");
  const measure = (text, font) => { ink.font = font; return ink.measureText(text).width; };
  const left = Math.min(...discs.map((one) => one.x - one.r)), right = Math.max(...discs.map((one) => one.x + one.r));
  const top = Math.min(...discs.map((one) => one.y - one.r)), bottom = Math.max(...discs.map((one) => one.y + one.r));
  const fits = Math.min((width - 40) / (right - left), (height - 50) / (bottom - top)), k = ZOOM;
  const [x, y] = k === fits ? [(left + right) / 2, (top + bottom) / 2] : [discs[0].x, discs[0].y];
  const at = zoomIdentity.translate(width / 2 - k * x, height / 2 - k * y).scale(k);
  const made = names({ discs, points }, { width, height, at, lit: null, active: null }, measure);
  const spots = points.map((one) => at.apply([one.x, one.y])).map(([x, y]) => ({ x, y, w: 0.1, h: 0.1 }));
  const over = (a, b) => a !== b && a.x < b.x + b.w && a.x + a.w > b.x && a.y < b.y + b.h && a.y + a.h > b.y;
  const under = (others) => made.filter((one) => others.some((other) => over(one, other))).length;
  const without = discs.filter((disc) => !made.some((one) => one.text === disc.label));
  return [made.length, under(made), under(spots), without.length];
})()"""


@pytest.mark.parametrize("width", [1280, 390])
def test_names_on_the_map_collide_with_nothing(show: Show, width: int) -> None:
    page = show(explorer(office()), width=width)
    page.wait("document.querySelector('.map canvas')?.width > 300")
    found = [page.run(NAMED.replace("ZOOM", zoom)) for zoom in ("fits", "2", "4")]
    assert [(shown > 0, over_names, over_points) for shown, over_names, over_points, _ in found] == [(True, 0, 0)] * 3
    assert found[0][-1] == 0


def office() -> Catalog:
    """Agents with many tools and with few, whose names are long and short."""
    sizes = {"units": 16, "calculator-of-the-office": 18, "time": 2, "files": 7, "guide": 1, "the-planets": 3, "crm": 3}
    return Catalog(
        agents=tuple(
            Agent(id=name, tools=tuple(Tool(agent=name, name=f"{name}_does_number_{n}") for n in range(size)))
            for name, size in sizes.items()
        )
    )


def test_two_users_sign_in_one_after_the_other_and_see_different_things(show: Show, catalog: Catalog) -> None:
    policy = Policy(default="deny", users={"ann": {"allow": ["units"]}, "bob": {"allow": ["maps"]}})  # type: ignore[dict-item]
    app = Authenticated(explorer(catalog, policy, authenticated=True), refuse=True)
    page = show(app, "#/search")
    assert page.run(f"{FOCUS}.id") == "token"
    page.write("ann")
    page.press("Enter")
    page.wait("document.getElementById('counts').textContent.includes('1 agent, 2 tools')")
    assert "Signed in as ann" in page.run("document.getElementById('user').textContent")
    page.wait("document.querySelectorAll('.everybody a').length === 1")
    page.run("document.querySelector('#user button').click()")
    page.wait("document.getElementById('token')")
    page.write("bob")
    page.press("Enter")
    page.wait("document.getElementById('counts').textContent.includes('1 agent, 1 tool')")
    page.wait("document.querySelector('.everybody a')?.textContent.startsWith('maps')")
    assert "units" not in page.run("document.body.innerText")
    page.run("location.hash = '#/'")
    page.wait("document.querySelector('.map canvas')?.getAttribute('aria-label').startsWith('Map of 1 agent, 1 tool')")


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
def test_the_page_can_be_read_in_any_width_in_light_and_in_dark(show: Show, catalog: Catalog, width: int) -> None:
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
    (question,) = generated_queries(1)
    page.run(f"location.hash = '#/search?q={quote(question)}'")
    page.wait("performance.getEntriesByName('callsheet-search').length")
    assert page.run("performance.getEntriesByName('callsheet-search')[0].duration") < 2_000  # milliseconds
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
