"""Scenarios with one misbehaving server; what needs the shared chaos server is left out where that is not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.retrievers import MiniLMEmbeddings
from scenario import Scenario
from servers import CHAOS


@pytest.fixture
def scenario(tmp_path: Path, minilm: MiniLMEmbeddings) -> Callable[..., Scenario]:
    """Makes scenarios, each in a folder of its own."""
    made: list[Scenario] = []

    def make(**more: Any) -> Scenario:
        made.append(Scenario(tmp_path / f"scenario-{len(made)}", minilm, **more))
        return made[-1]

    return make


@pytest.fixture
def chaos() -> str:
    """Before a mode: the shared server in that mode."""
    if not CHAOS.is_file():
        pytest.skip(f"the shared fault-injection server is not at {CHAOS}")
    return "chaos:"
