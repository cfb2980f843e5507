"""The office of the fake agents, and supervisors over it."""

from __future__ import annotations

from typing import Any

import pytest

from conversation import Conversation, Conversations
from deciding_model import DecidingModel
from fake_agents import OFFICE, FakeAgents


@pytest.fixture
def office() -> FakeAgents:
    return FakeAgents(*OFFICE)


@pytest.fixture
def conversation(office: FakeAgents) -> Conversations:
    """Makes a supervisor with a model (its functions by role) and settings."""

    def made(model: DecidingModel | None = None, **settings: Any) -> Conversation:
        return Conversation(office.agents(), model=model, settings=settings)

    return made
