"""A headless Chromium for tests, spoken to by its DevTools protocol: real keys, real layout, real accessibility."""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
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

Run = Callable[[str], Any]
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "/": 191}


class BrowserError(Exception):
    """The browser did not carry out a command of the protocol."""


class Browser:
    """One browser with one page.

    Attributes:
        complaints: What the page's console says is wrong since it was shown.
    """

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
        raise _missing("Chromium is installed but does not start here")

    def send(self, method: str, **params: Any) -> Any:
        """One command of the protocol, and its result."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        answer = self._until(lambda message: message.get("id") == number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def show(self, address: str) -> None:
        """Goes to a page and waits until it is loaded."""
        self.send("Page.navigate", url="about:blank")
        self._until(lambda message: message.get("method") == "Page.loadEventFired")
        self.complaints.clear()
        self.send("Page.navigate", url=address)
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 30) -> None:
        """Waits until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self._holds(condition):
            if time.monotonic() > deadline:
                page = self.run("document.body.innerText")
                pytest.fail(f"never came true: {condition}\n{page}\n{self.complaints}")
            time.sleep(0.02)

    def _holds(self, condition: str) -> bool:
        """Whether an expression is true; not while the page is left for another, which has no context yet."""
        try:
            return bool(self.run(f"Boolean({condition})"))
        except BrowserError as error:
            if re.search(r"context|navigated", str(error)):
                return False
            raise

    def press(self, key: str, *, shift: bool = False) -> None:
        """A key of the keyboard, by its name."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        known = {"key": key, "windowsVirtualKeyCode": _KEYS.get(key, ord(key[0].upper())), "modifiers": 8 * shift}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **known)
        self.send("Input.dispatchKeyEvent", type="keyUp", **known)

    def write(self, text: str) -> None:
        """Text at the place that has the focus."""
        self.send("Input.insertText", text=text)

    def window(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """The size of the window, in pixels, and the colours that its user prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def heard(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader is told of."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """A picture of the window, or of the whole page."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """Ends it."""
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


def _missing(reason: str) -> BaseException:
    """A skip on a user's machine and a failure in CI, which never leaves the pages untested in silence."""
    return pytest.fail.Exception(reason) if os.environ.get("CI") else pytest.skip.Exception(reason)


def opened(profile: Path) -> Iterator[Browser]:
    """A browser for the tests of a module, where one is installed."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise _missing(f"no Chromium is installed ({', '.join(_PROGRAMS)}): the page is not tried in a browser")
    browser = Browser(program, profile)
    try:
        yield browser
    finally:
        browser.close()
