"""A headless Chromium for tests, driven by Playwright: real keys, real layout, real accessibility."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Error, Page, sync_playwright

Run = Callable[[str], Any]
T = TypeVar("T")
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = ["--no-sandbox", "--disable-gpu"]


class Browser:
    """One browser with one page.

    Playwright's blocking API keeps an event loop running in its thread, where no asynchronous test could run. So it has
    a thread of its own.

    Args:
        program: The file of Chromium.
        scale: Pixels of a picture for each pixel of the page.

    Attributes:
        complaints: What the page's console says is wrong since it was shown.
    """

    def __init__(self, program: str, scale: int = 1) -> None:
        self.complaints: list[str] = []
        self._scale = scale
        self._thread = ThreadPoolExecutor(1, "browser")
        self._page: Page = self._in_thread(lambda: self._opened(program))

    def _in_thread(self, work: Callable[[], T]) -> T:
        return self._thread.submit(work).result()

    def _opened(self, program: str) -> Page:
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        context = self._browser.new_context(viewport={"width": 1400, "height": 900}, device_scale_factor=self._scale)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        self._devtools = context.new_cdp_session(page)
        return page

    def show(self, address: str) -> None:
        """Goes to a page and waits until it is loaded."""

        def go() -> None:
            # From an empty page: an address that differs in its fragment only would load nothing.
            self._page.goto("about:blank")
            self.complaints.clear()
            self._page.goto(address)

        self._in_thread(go)

    def run(self, script: str) -> Any:
        """Returns the value of an expression in the page."""
        return self._in_thread(lambda: self._value(script))

    def _value(self, script: str) -> Any:
        # Not by Playwright's own ways: they call a value that is a function, and wait by an eval that the page forbids.
        how = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self._devtools.send("Runtime.evaluate", how)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 30) -> None:
        """Waits until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self._in_thread(lambda: self._holds(condition)):
            if time.monotonic() > deadline:
                page = self.run("document.body.innerText")
                pytest.fail(f"never came true: {condition}\n{page}\n{self.complaints}")
            time.sleep(0.02)

    def _holds(self, condition: str) -> bool:
        """Whether an expression is true; not while the page is left for another, which has no context yet."""
        try:
            return bool(self._value(f"Boolean({condition})"))
        except Error as error:
            if re.search(r"context|navigat", str(error)):
                return False
            raise

    def press(self, key: str, *, shift: bool = False) -> None:
        """Presses a key of the keyboard, by its name."""
        self._in_thread(lambda: self._page.keyboard.press(f"Shift+{key}" if shift else key))

    def write(self, text: str) -> None:
        """Writes text at the place that has the focus."""
        self._in_thread(lambda: self._page.keyboard.insert_text(text))

    def window(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Sets the size of the window, in pixels, and the colours that its user prefers."""

        def change() -> None:
            self._page.set_viewport_size({"width": width, "height": height})
            self._page.emulate_media(color_scheme="dark" if dark else "light")

        self._in_thread(change)

    def heard(self) -> list[tuple[str, str]]:
        """Returns role and name of everything that a screen reader reads."""
        nodes = self._in_thread(lambda: self._devtools.send("Accessibility.getFullAXTree"))["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """Saves a picture of the window, or of the whole page."""
        self._in_thread(lambda: self._page.screenshot(path=file, full_page=whole))

    def close(self) -> None:
        """Ends it."""

        def end() -> None:
            self._browser.close()
            self._playwright.stop()

        self._in_thread(end)
        self._thread.shutdown()


def _missing(reason: str) -> BaseException:
    """A skip on a user's machine and a failure in CI, which never leaves the pages untested in silence."""
    return pytest.fail.Exception(reason) if os.environ.get("CI") else pytest.skip.Exception(reason)


def opened(scale: int = 1) -> Iterator[Browser]:
    """A browser for the tests of a module, where one is installed; its pictures have so many pixels for each one."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise _missing(f"no Chromium is installed ({', '.join(_PROGRAMS)}): the page is not tried in a browser")
    try:
        browser = Browser(program, scale)
    except Error as error:
        raise _missing(f"Chromium is installed but does not start here: {error}") from error
    try:
        yield browser
    finally:
        browser.close()
