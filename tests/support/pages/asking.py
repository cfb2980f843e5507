"""A page over a few agents in this process that can be asked; one of their tools waits until it is let go."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from starlette.applications import Starlette

from callsheet.agents.servers.catalogs.catalog_sources import load_reference
from callsheet.graphs import Policy, User, load
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.run.threads import Threads
from callsheet.orchestrator.server import Site, create_explorer
from callsheet.orchestrator.server.runs.local_backend import LocalBackend
from callsheet.orchestrator.server.runs.runs import Runs
from callsheet.orchestrator.supervisor import create_supervisor
from deciding_model import own_steps
from explored import KEY, served
from scripted_model import ScriptedModel, calls, ended

Length = Literal["miles", "kilometers", "meters"]
READS: Any = {"annotations": {"readOnlyHint": True}}
BOTH = "Convert 3 miles to kilometers. Write a note with the text 'hello there'."


def work(messages: Sequence[BaseMessage]) -> AIMessage:
    """What a model makes of a step: one call, or a question for the address of a letter."""
    if isinstance(messages[-1], ToolMessage):
        return ended(messages[-1])
    step = own_steps(messages[1].text)
    if step.startswith("Convert"):
        return calls("units_convert_length", value=3, from_unit="miles", to_unit="kilometers")
    if step.startswith("Write"):
        return calls("notebook_write_note", text="hello there")
    if address := re.search(r"\w+@[\w.]+", step):
        return calls("post_send_letter", to=address[0])
    return calls("finish", status="needs_input", answer="To whom?", missing=["to"])


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
        worker: BaseChatModel | None = None,
        planner: BaseChatModel | None = None,
        *,
        model: bool = True,
    ) -> Starlette:
        """The page for one user, over the same threads; without a ``model``, none works."""
        loaded = load(self._source, policy=policy)
        found = served(loaded)
        workflow = create_supervisor(
            loaded,
            retriever=found.retriever,
            registry=found.registry,
            settings=Settings(approval="ask"),
            planner_model=planner,
            worker_model=worker or ScriptedModel(replies=[work]) if model else None,
        )
        runs = Runs(LocalBackend(workflow, self.threads, found.registry, user))
        site = Site(lambda: found)
        return create_explorer(site, runs=runs, key=KEY, user=user, hosts=("testserver",))

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
