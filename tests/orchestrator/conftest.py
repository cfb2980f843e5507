"""Models that follow a script, and a catalog of tools in this process."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from callsheet.graphs import Loaded
from deciding_model import own_steps
from fake_agents import SHOP, FakeAgents
from scripted_model import ScriptedModel, calls, ended


@pytest.fixture
def shop() -> FakeAgents:
    return FakeAgents(*SHOP)


@pytest.fixture
def catalog(shop: FakeAgents, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    return shop.loaded(monkeypatch)


@pytest.fixture
def worker() -> ScriptedModel:
    """Calls the tool that the step is about, then repeats what it said."""
    words = {"weather": ("meteo_weather_report", {"city": "Oslo"}), "rate": ("bank_exchange_rate", {"currency": "USD"})}

    def reply(messages: Any) -> AIMessage:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            return ended(last)
        told = own_steps(last.text).splitlines()[0]
        for word, (name, args) in words.items():
            if word in told:
                offered = model.shown[-1]["tools"]
                return calls(name if name in offered else "skywatch_city_weather", **args)
        return calls("notebook_write_note", text="both")

    model = ScriptedModel(replies=[reply])
    return model


@pytest.fixture
def noting() -> ScriptedModel:
    """Looks up the rate, and writes into the note what the bank said."""

    def reply(messages: Any) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return ended(messages[-1])
        if own_steps(messages[-1].text).startswith("look up the rate"):
            return calls("bank_exchange_rate", currency="USD")
        return calls("notebook_write_note", text="1 USD = 0.9 EUR")

    return ScriptedModel(replies=[reply])
