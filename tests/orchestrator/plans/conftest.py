"""A desk of tools, and supervisors over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deciding_model import DecidingModel
from desk import Desk, Office


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def office(desk: Desk) -> Callable[..., Office]:
    """Makes a supervisor with a model (its functions by role) and settings."""

    def made(model: DecidingModel | None = None, **settings: Any) -> Office:
        return Office(desk, model, **settings)

    return made
