"""The page in a real browser: search, walk, keyboard, screen reader, runs, signing in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Policy, Tool
from chromium import Browser
from explored import Authenticated, contacts, explorer
from explored_page import heading, saved
from kept_runs import ASKING, ENDED, RESULT, REVISED, USED, Kept, moment

pytestmark = pytest.mark.server
Show = Callable[..., Browser]
FOCUS = "document.activeElement"


def test_an_inferred_dependency_says_so(show: Show) -> None:
    page = show(explorer(contacts()), "#/search?q=delete_contact")
    heading(page, "crm/delete_contact")
    why = page.run("[...document.querySelectorAll('.agents .tools .why')].map((e) => e.textContent)")
    assert why[1] == "Used by crm/delete_contact; inferred: its result holds contact_id, which fits contact_id"
    assert page.run("document.getElementById('counts').textContent") == "1 agent, 2 tools, 0 dependencies, 1 inferred"
    assert page.complaints == []


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


def test_a_run_is_shown(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([ENDED])), "#/runs")
    page.wait("document.querySelector('.threads a')")
    page.run("document.querySelector('.threads a').click()")
    page.wait("document.querySelectorAll('.steps > li').length === 2")
    page.run("document.querySelector('.steps details').open = true")
    said = page.run("document.querySelector('.run').innerText")
    for part in (
        "request b",
        "by rules",
        "1 call, 0.25 s",
        "units/convert_length",
        "a may need it",
        "waits its turn",
        "after 1",
        "4.8 km",
    ):
        assert part in said
    assert page.run(f"{FOCUS}.textContent") == "request b"
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
    ended = moment("b", "09", results=dict(zip("12", results, strict=False)), messages=ENDED.values["messages"])
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
    today, yesterday, before = page.run(f"import('./run.js').then((run) => {ago})")
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


def test_a_question_revisions_and_usage_are_shown(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([ASKING, REVISED])), "#/runs?id=t")
    page.wait("document.querySelector('.earlier summary')")
    assert page.run("document.querySelector('.thread > .run .badge').textContent") == "Waits for you"
    page.run("document.querySelector('.earlier details').open = true")
    page.wait("document.querySelector('.earlier .run-changes li')")
    said = page.run("document.querySelector('.thread').innerText")
    assert "After wave 1: added 3; dropped 2: the file is <b>missing</b>" in said
    assert "3 model calls, 300 input tokens (0 cached), 30 output tokens" in said
    assert page.complaints == []


def test_the_usage_is_shown_in_total_by_role_and_by_step(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([USED])), "#/runs?id=t")
    page.wait("document.querySelector('.run-models tbody tr')")
    total = "3 model calls, 6,000 input tokens (4,000 cached), 430 output tokens"
    assert total in page.run("document.querySelector('.run-head .small').textContent")
    rows = page.run("[...document.querySelectorAll('.run-models tr')].map((row) => row.innerText.split('\\t'))")
    assert rows[0] == ["role", "calls", "input tokens", "of them cached", "output tokens"]
    assert [row[:2] for row in rows[1:]] == [["planner", "1"], ["worker", "2"]]
    assert "5,540 tokens" in page.run("document.querySelector('.steps summary').textContent")
    assert total in saved(page, "HTML page")
    assert page.complaints == []


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
