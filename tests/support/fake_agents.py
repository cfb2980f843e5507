"""Agents in this process, whose tools record their calls and change nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool, tool

from callsheet.agents.calls.outcome import Fault
from callsheet.agents.servers.catalogs.catalog_sources import load_reference
from callsheet.graphs import Loaded, load

if TYPE_CHECKING:
    import pytest

SHOP = ("meteo", "skywatch", "bank", "notebook")
OFFICE = ("files", "ledger", "post", "wire")
MODULE = "fake_agents_of_the_tests"
"""The module from which ``FakeAgents.loaded`` has a catalog load the agents."""
FILES = {"may.txt": ("2026-05-02", "rent 700"), "june.txt": ("2026-06-01", "rent 720"), "april.txt": ("2026-04-03", "")}
"""Name of a file -> its date and its text."""


class FakeAgents:
    """Some of the agents, and what was called of them.

    Args:
        names: Which agents there are.
        log: A file of the calls, which outlives the program.

    Attributes:
        calls: Each call, its tool and its arguments.
        broken: Tools that report an error.
        crashing: Tools whose server ends.
        approval: Their author's word on their approval; None leaves it to the settings.
    """

    def __init__(self, *names: str, log: Path | None = None) -> None:
        self.names = names
        self.log = log
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.broken: set[str] = set()
        self.crashing: set[str] = set()
        self.approval: str | None = "never"

    @property
    def called(self) -> list[str]:
        """The tools called, in order."""
        return [name for name, _ in self.calls]

    def logged(self) -> list[Any]:
        """The calls in the file, each as its tool and its arguments."""
        if self.log is None or not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def agents(self) -> dict[str, list[BaseTool]]:
        """The agents as ``load`` and ``create_supervisor`` take them."""
        makers: dict[str, Callable[[], list[BaseTool]]] = {
            "meteo": self._meteo,
            "skywatch": self._skywatch,
            "bank": self._bank,
            "notebook": self._notebook,
            "files": self._files,
            "ledger": self._ledger,
            "post": self._post,
            "wire": self._wire,
        }
        return {name: makers[name]() for name in self.names}

    def loaded(self, monkeypatch: pytest.MonkeyPatch) -> Loaded:
        """The agents as a catalog from outside the program, which can be called."""
        module = ModuleType(MODULE)
        module.agents = self.agents  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, MODULE, module)
        return load(load_reference(f"{MODULE}:agents"))

    def _done(self, name: str, answer: Any, /, **args: Any) -> str:
        self.calls.append((name, args))
        if self.log is not None:
            with self.log.open("a") as log:
                log.write(json.dumps([name, args]) + "\n")
        if name in self.broken:
            raise RuntimeError(f"{name} is out of order")
        if name in self.crashing:
            raise Fault("crash", "the process ended")
        return answer if isinstance(answer, str) else json.dumps(answer)

    def _reading(self, made: BaseTool) -> list[BaseTool]:
        """A tool that only reads, and says so where its approval is not at issue."""
        if self.approval == "never":
            made.metadata = {"annotations": {"readOnlyHint": True}}
            return [made]
        return self._changing(made)

    def _changing(self, *made: BaseTool) -> list[BaseTool]:
        for one in made:
            one.metadata = {"callsheet/approval": self.approval} if self.approval else None
        return list(made)

    def _meteo(self) -> list[BaseTool]:
        @tool
        def weather_report(city: str) -> str:
            """Tells the weather forecast of a city."""
            return self._done("weather_report", f"sunny in {city}", city=city)

        return self._reading(weather_report)

    def _skywatch(self) -> list[BaseTool]:
        @tool
        def city_weather(city: str) -> str:
            """Gives the current weather of a city: forecast, rain, wind."""
            return self._done("city_weather", f"rain in {city}", city=city)

        return self._reading(city_weather)

    def _bank(self) -> list[BaseTool]:
        @tool
        def exchange_rate(currency: str) -> str:
            """Looks up the exchange rate of a currency in euro."""
            return self._done("exchange_rate", f"1 {currency} = 0.9 EUR", currency=currency)

        return self._reading(exchange_rate)

    def _notebook(self) -> list[BaseTool]:
        @tool
        def write_note(text: str) -> str:
            """Writes a note with a text into the notebook."""
            return self._done("write_note", f"noted: {text}", text=text)

        @tool
        def delete_note(title: str) -> str:
            """Deletes a note from the notebook."""
            return self._done("delete_note", f"deleted {title}", title=title)

        return self._changing(write_note, delete_note)

    def _files(self) -> list[BaseTool]:
        @tool
        def list_files(folder: str) -> str:
            """Lists the files of a folder, each with its name and date."""
            rows = [{"name": name, "date": date} for name, (date, _) in FILES.items()]
            return self._done("list_files", {"files": rows if folder == "notes" else []}, folder=folder)

        @tool
        def read_file(path: str) -> str:
            """Reads the text of a file at a path."""
            return self._done("read_file", FILES[path][1] or "(empty)", path=path)

        return self._changing(list_files, read_file)

    def _ledger(self) -> list[BaseTool]:
        @tool
        def write_row(text: str) -> str:
            """Writes a row into the ledger, a table of payments."""
            return self._done("write_row", f"written: {text}", text=text)

        return self._changing(write_row)

    def _post(self) -> list[BaseTool]:
        @tool
        def send_letter(text: str) -> str:
            """Sends a letter by post."""
            return self._done("send_letter", f"sent: {text}", text=text)

        return self._changing(send_letter)

    def _wire(self) -> list[BaseTool]:
        @tool
        def send_telegram(text: str) -> str:
            """Sends a telegram by wire."""
            return self._done("send_telegram", f"wired: {text}", text=text)

        return self._changing(send_telegram)
