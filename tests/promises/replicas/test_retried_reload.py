"""A catalog in a shared store is reloaded when another process has changed it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from callsheet.agents import ToolRegistry
from callsheet.graphs import Agent, Catalog, Loaded, Tool, load
from callsheet.orchestrator.run.process import catalog_updates
from servers import until


def catalog(tool: str) -> Catalog:
    return Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name=tool),)),))


def test_what_could_not_be_reloaded_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError("the database starts"), OSError("the database starts")]

    def read() -> Loaded:
        if failures:
            raise failures.pop()
        return load(catalog("new"))

    def listen_once(database: Any, changed: Callable[[str], None]) -> threading.Event:
        changed("")  # the connection is back; no further change is announced
        return threading.Event()

    monkeypatch.setattr(catalog_updates, "listen", listen_once)
    registry = ToolRegistry.from_catalog(load(catalog("old")))
    database: Any = None
    stop = catalog_updates.follow_store(database, registry, read)
    assert until(lambda: "a/new" in registry.catalog.tools)
    assert not failures
    stop.set()
