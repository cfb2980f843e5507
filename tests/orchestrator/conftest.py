"""Models that follow a script, and a catalog of tools in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, tool

from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.servers.catalogs.catalog_sources import load_reference
from callsheet.graphs import Loaded, load
from deciding_model import own_steps
from scripted_model import ScriptedModel, calls, ended, planned


@pytest.fixture
def scripted() -> type[ScriptedModel]:
    return ScriptedModel


@pytest.fixture
def say() -> dict[str, Callable[..., AIMessage]]:
    return {"calls": calls, "planned": planned}


class Shop:
    """Agents of which every call is counted; ``approval`` is their author's word.

    ``broken`` names tools that report an error, ``crashing`` those whose server ends.
    """

    def __init__(self) -> None:
        self.called: list[str] = []
        self.broken: set[str] = set()
        self.crashing: set[str] = set()
        self.approval: str | None = "never"

    def _done(self, name: str, said: str) -> str:
        self.called.append(name)
        if name in self.broken:
            raise RuntimeError(f"{name} is out of order")
        if name in self.crashing:
            raise Fault("crash", "the process ended")
        return said

    def agents(self) -> dict[str, list[BaseTool]]:
        @tool
        def weather_report(city: str) -> str:
            """Tells the weather forecast of a city."""
            return self._done("weather_report", f"sunny in {city}")

        @tool
        def city_weather(city: str) -> str:
            """Gives the current weather of a city: forecast, rain, wind."""
            return self._done("city_weather", f"rain in {city}")

        @tool
        def exchange_rate(currency: str) -> str:
            """Looks up the exchange rate of a currency in euro."""
            return self._done("exchange_rate", f"1 {currency} = 0.9 EUR")

        @tool
        def write_note(text: str) -> str:
            """Writes a note with a text into the notebook."""
            return self._done("write_note", f"noted: {text}")

        @tool
        def delete_note(title: str) -> str:
            """Deletes a note from the notebook."""
            return self._done("delete_note", f"deleted {title}")

        for made in (weather_report, city_weather, exchange_rate, write_note, delete_note):
            made.metadata = {"callsheet/approval": self.approval} if self.approval else None
        for reader in (weather_report, city_weather, exchange_rate) if self.approval == "never" else ():
            reader.metadata = {"annotations": {"readOnlyHint": True}}
        return {
            "meteo": [weather_report],
            "skywatch": [city_weather],
            "bank": [exchange_rate],
            "notebook": [write_note, delete_note],
        }

    def loaded(self, monkeypatch: pytest.MonkeyPatch) -> Loaded:
        """The agents as a catalog that can be called."""
        import sys
        from types import ModuleType

        module = ModuleType("shop_of_the_tests")
        module.agents = self.agents  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        return load(load_reference(f"{module.__name__}:agents"))


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def catalog(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Loaded:
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
