"""The explorer over small catalogs; large ones come from the benchmarks, beside the package in the checkout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from callsheet.graphs import Catalog
from chromium import Browser, opened
from explored import KEY, client_of, explorer
from explored_page import serving
from small import small_catalog

sys.path.insert(0, str(Path(__file__).parents[3]))
Asked = Callable[..., Any]
Show = Callable[..., Browser]


@pytest.fixture
def catalog() -> Catalog:
    """That of all tests, in the place of the one that can be called."""
    return small_catalog()


@pytest.fixture
def client(catalog: Catalog) -> TestClient:
    """The explorer over the small catalog of the tests."""
    return client_of(explorer(catalog))


@pytest.fixture
def asked() -> Asked:
    """Asks an application for something of its API, and gives what it answers."""

    def ask(app: Starlette | TestClient, name: str, /, status: int = 200, **given: Any) -> Any:
        client = app if isinstance(app, TestClient) else client_of(app)
        answer = client.get(f"/callsheet/api/{name}", params=given)
        assert answer.status_code == status, answer.text
        return answer.json()

    return ask


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    yield from opened()


@pytest.fixture
def show(browser: Browser) -> Iterator[Show]:
    """Shows an application at an address, with the key, in a window of this width."""
    with ExitStack() as serve:

        def page(app: ASGIApp, at: str = "", width: int = 1280, *, dark: bool = False) -> Browser:
            browser.window(width, dark=dark)
            address = serve.enter_context(serving(app))
            if not at.startswith("#key="):
                browser.show(f"{address}icon.svg")
                browser.run(f"localStorage.setItem('callsheet-key', {KEY!r})")
            browser.show(address + at)
            browser.wait("document.getElementById('counts').textContent || document.getElementById('token')")
            return browser

        yield page
        browser.show("about:blank")
