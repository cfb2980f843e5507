"""Agents whose answers a plan depends on, and a supervisor over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import Settings, create_supervisor
from callsheet.graphs import Loaded, load
from deciding_model import DecidingModel

Steps = list[dict[str, Any]]
FILES = {"may.txt": ("2026-05-02", "rent 700"), "june.txt": ("2026-06-01", "rent 720"), "april.txt": ("2026-04-03", "")}


class Desk:
    """Files, a ledger and two postal services; every call is kept, and ``broken`` names tools that fail."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.broken: set[str] = set()
        self.approval = "never"

    def names(self) -> list[str]:
        """The tools called, in order."""
        return [name for name, _ in self.calls]

    def _done(self, name: str, answer: Any, /, **args: Any) -> str:
        self.calls.append((name, args))
        if name in self.broken:
            raise RuntimeError(f"{name} is out of order")
        return answer if isinstance(answer, str) else json.dumps(answer)

    def agents(self) -> dict[str, list[BaseTool]]:
        @tool
        def list_files(folder: str) -> str:
            """Lists the files of a folder, each with its name and date."""
            rows = [{"name": name, "date": date} for name, (date, _) in FILES.items()]
            return self._done("list_files", {"files": rows if folder == "notes" else []}, folder=folder)

        @tool
        def read_file(path: str) -> str:
            """Reads the text of a file at a path."""
            return self._done("read_file", FILES[path][1] or "(empty)", path=path)

        @tool
        def write_row(text: str) -> str:
            """Writes a row into the ledger, a table of payments."""
            return self._done("write_row", f"written: {text}", text=text)

        @tool
        def send_letter(text: str) -> str:
            """Sends a letter by post."""
            return self._done("send_letter", f"sent: {text}", text=text)

        @tool
        def send_telegram(text: str) -> str:
            """Sends a telegram by wire."""
            return self._done("send_telegram", f"wired: {text}", text=text)

        for made in (list_files, read_file, write_row, send_letter, send_telegram):
            made.metadata = {"callsheet/approval": self.approval}
        return {"files": [list_files, read_file], "ledger": [write_row], "post": [send_letter], "wire": [send_telegram]}


class LoggedDesk(Desk):
    """Its calls are in a file, which outlives the program."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log

    def _done(self, name: str, answer: Any, /, **args: Any) -> str:
        with self.log.open("a") as log:
            log.write(json.dumps([name, args]) + "\n")
        return super()._done(name, answer, **args)

    def made(self) -> list[Any]:
        """The calls that took effect."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


class Office:
    """A supervisor over the desk's agents, in one thread."""

    def __init__(self, desk: Desk, model: DecidingModel | None, *, saver: Any = None, **settings: Any) -> None:
        self.saver = saver or InMemorySaver()
        loaded: Loaded = load(desk.agents())
        workflow = create_supervisor(loaded, model=model, settings=Settings(**settings))
        self.app: Any = workflow.compile(checkpointer=self.saver)
        self.config: Any = {"configurable": {"thread_id": "1"}}
        self.events: list[Any] = []

    def ask(self, request: Any) -> dict[str, Any]:
        """Runs a request, or goes on with a ``Command``; the state with what waits for the user."""
        given = {"messages": [{"role": "user", "content": request}]} if isinstance(request, str) else request
        self.events = list(self.app.stream(given, self.config, stream_mode="custom", durability="sync"))
        state = self.app.get_state(self.config)
        return {**state.values, "waiting": list(state.interrupts)}

    def revisions(self) -> list[Any]:
        """The revisions that were streamed in the last run."""
        return [event for event in self.events if event["event"] == "revision"]


def steps(*texts: str, **fields: Any) -> Steps:
    return [{"id": str(number), "text": text, **fields} for number, text in enumerate(texts, 1)]


def worker(text: str) -> Any:
    """Does a step by its first words."""
    first, _, rest = text.partition("\n")[0].partition(" ")
    names = {"list": ("list_files", "folder"), "read": ("read_file", "path"), "write": ("write_row", "text"),
             "post": ("send_letter", "text"), "wire": ("send_telegram", "text")}  # fmt: skip
    tool, parameter = names[first.rstrip(":")]
    return tool, {parameter: rest.removeprefix("rows: ").strip()}


SUM = "list notes, read each file and write the sum"


def sums() -> DecidingModel:
    """Reads each file that was listed, adds a row when it has read them, then ends."""

    def revise(told: str) -> dict[str, Any]:
        if "written:" in told:
            return {"done": True, "reason": "the row is there"}
        if "rent 720" in told:
            return {
                "steps": [{"id": "9", "text": "write 1420", "depends_on": ["2.1", "2.2"]}],
                "reason": "a row is due",
            }
        return {}

    plan = [*steps("list notes"), {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"}]
    return DecidingModel(plan=lambda _: {"steps": plan, "open": True}, revise=revise, work=worker)
