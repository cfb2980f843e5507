"""A page over a few agents in this process that can be asked; one of their tools waits until it is let go."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import tool
from starlette.applications import Starlette

from callsheet.agents.servers.catalogs.catalog_sources import load_reference
from callsheet.graphs import Policy, User, load
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.run.thread_files import Threads
from callsheet.orchestrator.server import Site, create_explorer
from callsheet.orchestrator.server.runs.local_runner import LocalRunner
from callsheet.orchestrator.server.runs.stores.database_runs import JoinedRuns, read_databases
from callsheet.orchestrator.server.runs.stores.local_runs import LocalRuns
from callsheet.orchestrator.supervisor import create_supervisor
from explored import served

KEY = "key-of-the-tests"
Length = Literal["miles", "kilometers", "meters"]
READS: Any = {"annotations": {"readOnlyHint": True}}
BOTH = "Convert 3 miles to kilometers. Write a note with the text 'hello there'."


class Asking:
    """The page, and what its tools were called with.

    Attributes:
        gate: Lets ``convert_length`` go on while it is set.
        notes: The notes that were written.
        letters: To whom letters were sent.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.notes: list[str] = []
        self.letters: list[str] = []
        self.threads = Threads(folder / "threads")
        module = ModuleType("agents_that_are_asked")
        module.agents = self._agents()  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        self._source = load_reference(f"{module.__name__}:agents")

    def page(
        self,
        policy: Policy | None = None,
        user: User | None = None,
        databases: Sequence[str] = (),
        worker: BaseChatModel | None = None,
    ) -> Starlette:
        """The page for one user, over the same threads, with runs of other programs; rules work by default."""
        loaded = load(self._source, policy=policy)
        found = served(loaded)
        workflow = create_supervisor(
            loaded,
            retriever=found.retriever,
            registry=found.registry,
            settings=Settings(approval="risky"),
            worker_model=worker,
        )
        runner = LocalRunner(workflow, self.threads, found.registry, user)
        runs = JoinedRuns(LocalRuns(self.threads), read_databases(databases))
        site = Site(lambda: found)
        return create_explorer(site, runs=runs, runner=runner, key=KEY, user=user, hosts=("testserver",))

    def _agents(self) -> dict[str, list[Any]]:
        @tool
        def convert_length(value: float, from_unit: Length, to_unit: Length) -> str:
            """Converts a length from one unit to another: miles, kilometers, meters."""
            self.gate.wait(60)
            return f"{value * 1.609344:.2f} {to_unit}"

        @tool
        def write_note(text: str) -> str:
            """Writes a note with a text into the notebook."""
            self.notes.append(text)
            return f"noted: {text} <b>bold</b>"

        @tool
        def send_letter(to: str) -> str:
            """Sends a letter to an e-mail address."""
            self.letters.append(to)
            return f"sent to {to}"

        convert_length.metadata = READS
        return {"units": [convert_length], "notebook": [write_note], "post": [send_letter]}
