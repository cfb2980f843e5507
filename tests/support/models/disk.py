"""Files that a worker reads and writes, a worker whose replies depend on its step, and a supervisor of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool

from callsheet import Settings, create_supervisor
from deciding_model import own_steps, with_workers
from scripted_model import ScriptedModel, calls

RAW = "[DIR] repo\n[FILE] c.txt\n[FILE] b.txt\n[FILE] a.txt\nTotal: 4 entries"
BROKEN, MENDED = '{"a": 1,', '{"a": 1}'
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Disk:
    """Files with a raw listing, a tool that reports its error as text, and a log of what was called."""

    def __init__(self) -> None:
        self.files = {"a.json": BROKEN}
        self.called: list[tuple[str, Any]] = []

    def agents(self) -> dict[str, list[Any]]:
        @tool
        def read_file(path: str) -> str:
            """Reads the text of a file."""
            self.called.append(("read_file", path))
            return self.files.get(path, f"{path} cannot be opened by this program, sorry")

        @tool
        def write_file(path: str, content: str) -> str:
            """Writes a text to a file."""
            self.called.append(("write_file", (path, content)))
            self.files[path] = content
            return "written"

        @tool
        def list_files() -> str:
            """Lists the files."""
            self.called.append(("list_files", None))
            return RAW

        @tool
        def measure(path: str) -> str:
            """Measures the size of a file."""
            self.called.append(("measure", path))
            return '{"rows": [{"name": "b.txt"}, {"name": "c.txt"}]}'

        @tool
        def read_clock() -> str:
            """Reads the time of day."""
            return "noon"

        for made in (read_file, write_file, list_files, measure, read_clock):
            made.metadata = {"callsheet/approval": "never"}
        for reader in (read_file, list_files, read_clock):
            reader.metadata = {"annotations": {"readOnlyHint": True}}
        return {"disk": [read_file, write_file, list_files, measure], "clock": [read_clock]}


Said = AIMessage | Callable[[Sequence[BaseMessage]], AIMessage]


def call(name: str, **args: Any) -> AIMessage:
    """A call under the name that a model sees."""
    return calls(f"disk_{name}", **args)


def finish(status: str, answer: str, **more: Any) -> AIMessage:
    return calls("finish", status=status, answer=answer, **more)


def by_step(**replies: Sequence[Said]) -> ScriptedModel:
    """A worker whose replies depend on its step, by the first word of it."""
    left = {word: list(said) for word, said in replies.items()}

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        word = own_steps(messages[1].text).split()[0].lower().rstrip(":.")
        said = left[word].pop(0)
        return said(messages) if callable(said) else said

    return ScriptedModel(replies=[reply])


def supervised(
    disk: Disk, worker: ScriptedModel, *plan: dict[str, Any], revise: Any = None, saver: Any = None, **settings: Any
) -> Any:
    drafts = with_workers({"steps": list(plan)}) if len(plan) > 1 else {"steps": list(plan)}
    planner = ScriptedModel(replies=[calls("PlanDraft", **drafts), calls("PlanRevision", **(revise or {}))])
    options = Settings(**{"approval": "never", "tool_floor": 0, **settings})
    models: dict[str, Any] = {"planner_model": planner, "worker_model": worker}
    app: Any = create_supervisor(disk.agents(), settings=options, **models).compile(checkpointer=saver)
    app.planner, app.worker = planner, worker
    return app


def ask(app: Any, text: str = "Mend it") -> Any:
    return app.invoke({"messages": text}, THREAD)


ONE = {"id": "1", "text": "mend a.json"}
