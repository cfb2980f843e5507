"""The page in a real browser, where one is installed: search, details, dark and light, and hostile texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callsheet.graphs import Catalog
from callsheet.graphs.export.pictures import to_html
from chromium import Browser, Run, opened

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    yield from opened(tmp_path_factory.mktemp("profile"))


def shown(browser: Browser, catalog: Catalog, tmp_path: Path) -> Run:
    (tmp_path / "page.html").write_text(to_html(catalog), encoding="utf-8")
    browser.show((tmp_path / "page.html").as_uri())
    return browser.run


SEARCH = "search.value = {!r}; search.dispatchEvent(new Event('input')); found.textContent"
CLICK = "document.querySelectorAll('#view .{}')[{}].dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
DETAILS = "details.hidden ? '' : details.innerText"


def test_a_search_marks_what_it_finds_and_enter_goes_there(browser: Browser, catalog: Catalog, tmp_path: Path) -> None:
    run = shown(browser, catalog, tmp_path)
    assert run(SEARCH.format("PLACE coord")) == "1 found"
    assert run("document.querySelectorAll('.hit').length") == 1
    run("search.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))")
    assert run(DETAILS).split("\n")[1] == "find_place"
    assert run("decodeURIComponent(location.hash)") == "#maps/find_place"
    assert run(SEARCH.format("nothing like it")) == "0 found"
    assert ("searchbox", "Search") in browser.heard()
    assert run("search.labels[0].textContent") == "Search"  # neither a blank nor the number of hits
    assert run(SEARCH.format("")) == ""
    assert browser.complaints == []


def test_a_click_shows_details_and_what_depends_on_what(browser: Browser, catalog: Catalog, tmp_path: Path) -> None:
    run = shown(browser, catalog, tmp_path)
    run(CLICK.format("tool", 0))
    said = run(DETAILS)
    assert "Weather forecast for a place." in said
    assert "maps/find_place" in said.split("NEEDS\n")[1].split("NEEDED BY")[0]
    assert "travel/plan_trip" in said.split("NEEDED BY\n")[1]
    assert run("document.querySelectorAll('.edge.near').length") == 2
    run("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))")
    assert run(DETAILS) == ""
    run(CLICK.format("agent", 1))
    assert "units/convert_mass" in run(DETAILS).split("TOOLS\n")[1]
    assert browser.complaints == []


def test_kinds_can_be_hidden_sizes_and_colours_changed(browser: Browser, catalog: Catalog, tmp_path: Path) -> None:
    run = shown(browser, catalog, tmp_path)
    hidden = "getComputedStyle(document.querySelector('#view .edge.td')).display"
    assert run(hidden) == "inline"
    run("document.querySelector('[data-kind=td]').click()")
    assert run(hidden) == "none"
    before = run("svg.clientWidth")
    run("document.getElementById('in').click()")
    assert run("svg.clientWidth") > before
    ground = "getComputedStyle(document.querySelector('#view .ground')).fill"
    light = run(ground)
    run("document.getElementById('theme').click()")
    assert run(ground) != light
    assert browser.complaints == []


def test_hostile_texts_do_nothing_but_stand_there(browser: Browser, hostile: Catalog, tmp_path: Path) -> None:
    run = shown(browser, hostile, tmp_path)
    for kind, number in (("agent", 0), ("tool", 0), ("tool", 1)):
        run(CLICK.format(kind, number))
        assert "<img src=x onerror=" in run(DETAILS)
    assert run("document.title").startswith("Callsheet: ")
    assert run("document.images.length + document.querySelectorAll('script').length") == 2
    assert browser.complaints == []


def test_500_tools_can_be_read_where_they_stand(browser: Browser, large: Catalog, tmp_path: Path) -> None:
    run = shown(browser, large, tmp_path)
    overflowing = """[...document.querySelectorAll('#view .tool')].filter((tool) =>
        tool.querySelector('text').getBBox().width > tool.querySelector('.row').getBBox().width - 10).length"""
    assert run(overflowing) == 0
    heights = "[...document.querySelectorAll('#view .tool text')].map((text) => text.getBoundingClientRect().height)"
    assert run(f"Math.min(...{heights})") > 9
    assert browser.complaints == []
