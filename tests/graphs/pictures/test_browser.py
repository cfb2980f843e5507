"""The page in a real browser, where one is installed: search, details, dark and light, and hostile texts."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from callsheet.graphs import Catalog
from callsheet.graphs.pictures import to_html

pytestmark = pytest.mark.server
Run = Callable[[str], Any]


class Browser:
    """A headless Chromium, spoken to by its DevTools protocol."""

    def __init__(self, program: str, profile: Path) -> None:
        quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1400,900"]
        words = [program, *quiet, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []
        self._opened = ExitStack()
        address = self._address(profile / "DevToolsActivePort")
        self._socket = self._opened.enter_context(connect(address, max_size=None))
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def _address(self, port_file: Path) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            if port_file.exists() and (port := port_file.read_text().partition("\n")[0]):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                    pages = [page for page in json.load(answer) if page["type"] == "page"]
                if pages:
                    return str(pages[0]["webSocketDebuggerUrl"])
            time.sleep(0.1)
        self._process.kill()
        pytest.skip("Chromium is installed but does not start here")

    def send(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        return self._until(lambda message: message.get("id") == number)["result"]

    def show(self, page: Path) -> None:
        self.complaints.clear()
        self.send("Page.navigate", url=page.as_uri())
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def run(self, script: str) -> Any:
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def close(self) -> None:
        self._opened.close()
        self._process.terminate()
        self._process.wait(30)

    def _until(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = json.loads(self._socket.recv(timeout=60))
            if message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.complaints.append(json.dumps(message["params"]))
            if is_it(message):
                return message


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("no Chromium is installed: the page is not tried in a browser")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def shown(browser: Browser, catalog: Catalog, tmp_path: Path) -> Run:
    (tmp_path / "page.html").write_text(to_html(catalog), encoding="utf-8")
    browser.show(tmp_path / "page.html")
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
