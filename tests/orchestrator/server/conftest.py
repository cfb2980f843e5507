"""The explorer over small catalogs; large ones come from the benchmarks, beside the package in the checkout."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from callsheet.graphs import Catalog
from explored import explorer
from small import small_catalog

sys.path.insert(0, str(Path(__file__).parents[3]))
Asked = Callable[..., Any]


@pytest.fixture
def catalog() -> Catalog:
    """That of all tests, in the place of the one that can be called."""
    return small_catalog()


@pytest.fixture
def client(catalog: Catalog) -> TestClient:
    """The explorer over the small catalog of the tests."""
    return TestClient(explorer(catalog))


@pytest.fixture
def asked() -> Asked:
    """Asks an application for something of its API, and gives what it answers."""

    def ask(app: Starlette | TestClient, name: str, /, status: int = 200, **given: Any) -> Any:
        client = app if isinstance(app, TestClient) else TestClient(app)
        answer = client.get(f"/callsheet/api/{name}", params=given)
        assert answer.status_code == status, answer.text
        return answer.json()

    return ask
