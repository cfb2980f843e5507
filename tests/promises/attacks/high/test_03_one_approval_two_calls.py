"""Two runs answer one question of a thread at the same time: the call is sent at most once, and the second is told."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.runtime import RunControl
from langgraph.types import Command

from callsheet import CallsheetTools, create_supervisor
from callsheet.agents import ConcurrentRunError
from callsheet.agents.calls.review import decision_on
from callsheet.orchestrator.step import StepNodes
from forked import Forked
from notebook import Notebook
from scripted_model import ScriptedModel, calls
from small import outside

ORDER: Any = {"messages": [HumanMessage("Add a note with the text 'hello there'")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}


@asynccontextmanager
async def saver_of(kind: str, folder: Path) -> AsyncIterator[Any]:
    if kind == "memory":
        yield InMemorySaver()
    else:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "runs.sqlite")) as saver:
            yield saver


async def asked(app: Any) -> list[str]:
    """Ids of the questions that the thread waits with."""
    state = await app.ainvoke(ORDER, THREAD)
    return [found.id for found in state["__interrupt__"]]


async def both(*runs: Awaitable[Any]) -> tuple[list[Any], list[ConcurrentRunError]]:
    """What the runs that got through gave, and what the others were told."""
    found = await asyncio.gather(*runs, return_exceptions=True)
    told = [one for one in found if isinstance(one, ConcurrentRunError)]
    assert not [one for one in found if isinstance(one, BaseException) and one not in told]
    return [one for one in found if one not in told], told


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("answers", [("approve", "approve"), ("approve", "reject"), ("reject", "approve")])
async def test_two_answers_at_once_send_one_call(
    notebook: Notebook, tmp_path: Path, kind: str, answers: tuple[str, str]
) -> None:
    async with saver_of(kind, tmp_path) as saver:
        app: Any = create_supervisor(notebook.agents).compile(checkpointer=saver)
        (question,) = await asked(app)
        (done,), (told,) = await both(
            *(app.ainvoke(Command(resume={question: {"type": one}}), THREAD) for one in answers)
        )
        assert "another run" in str(told)
        assert "sent nothing" in str(told)
        status = done["results"]["1"]["status"]
        assert notebook.notes == (["hello there"] if status == "done" else [])
        assert (await app.aget_state(THREAD)).values["results"]["1"]["status"] == status


async def test_ten_answers_at_once_send_one_call(notebook: Notebook) -> None:
    app: Any = create_supervisor(notebook.agents).compile(checkpointer=InMemorySaver())
    (question,) = await asked(app)
    done, told = await both(*(app.ainvoke(Command(resume={question: {"type": "approve"}}), THREAD) for _ in range(10)))
    assert (len(done), len(told), notebook.notes) == (1, 9, ["hello there"])


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_two_blocking_threads_send_one_call(notebook: Notebook, tmp_path: Path, kind: str) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as database:
        saver = InMemorySaver() if kind == "memory" else database
        app: Any = create_supervisor(notebook.agents).compile(checkpointer=saver)
        (question,) = app.invoke(ORDER, THREAD)["__interrupt__"]
        together = threading.Barrier(2)

        def answer() -> str:
            together.wait()
            try:
                state = app.invoke(Command(resume={question.id: {"type": "approve"}}), THREAD)
                return str(state["results"]["1"]["status"])
            except ConcurrentRunError as error:
                return str(error)

        with ThreadPoolExecutor(2) as pool:
            said = sorted(future.result() for future in [pool.submit(answer) for _ in range(2)])
    assert said[1] == "done"
    assert "another run" in said[0]
    assert notebook.notes == ["hello there"]


async def test_a_second_answer_during_a_call_is_not_taken_for_a_crash(notebook: Notebook) -> None:
    """It is not taken for a call of a program that died, which a person would be asked about."""
    begun, go_on = threading.Event(), threading.Event()

    def add_note(text: str) -> str:
        """Adds a note with a text to the notebook."""
        begun.set()
        go_on.wait(60)
        notebook.notes.append(text)
        return "noted"

    app: Any = create_supervisor(outside({"notebook": [add_note]})).compile(checkpointer=InMemorySaver())
    (question,) = await asked(app)
    first = asyncio.create_task(app.ainvoke(Command(resume={question: {"type": "approve"}}), THREAD))
    await asyncio.to_thread(begun.wait, 60)
    for given in (
        Command(resume={question: {"type": "approve"}}),
        Command(resume={question: {"type": "reject"}}),
        None,
    ):
        with pytest.raises(ConcurrentRunError):
            await app.ainvoke(given, THREAD)
    go_on.set()
    assert (await first)["results"]["1"]["status"] == "done"
    assert notebook.notes == ["hello there"]


async def test_a_late_run_of_the_same_thread_sends_nothing(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    """It read the thread before the first one answered, and goes on when that one is done."""
    app: Any = create_supervisor(notebook.agents).compile(checkpointer=InMemorySaver())
    (question,) = await asked(app)
    real, held, go_on = StepNodes.work, asyncio.Event(), asyncio.Event()

    async def slow(self: StepNodes, state: Any, worker: Any) -> Any:
        if not held.is_set():
            held.set()
            await go_on.wait()
        return await real(self, state, worker)

    monkeypatch.setattr(StepNodes, "work", slow)
    app = create_supervisor(notebook.agents).compile(checkpointer=app.checkpointer)
    late = asyncio.create_task(app.ainvoke(Command(resume={question: {"type": "approve"}}), THREAD))
    await held.wait()
    done = await app.ainvoke(Command(resume={question: {"type": "approve"}}), THREAD)
    go_on.set()
    with pytest.raises(ConcurrentRunError, match="another run"):
        await late
    assert (done["results"]["1"]["status"], notebook.notes) == ("done", ["hello there"])


async def test_two_runs_with_one_control_send_one_call(notebook: Notebook) -> None:
    """As of a program that drains all its runs at once."""
    app: Any = create_supervisor(notebook.agents).compile(checkpointer=InMemorySaver())
    (question,) = await asked(app)
    answer, control = Command(resume={question: {"type": "approve"}}), RunControl()
    done, told = await both(*(app.ainvoke(answer, THREAD, control=control) for _ in range(2)))
    assert (len(done), len(told), notebook.notes) == (1, 1, ["hello there"])


async def test_two_answers_to_an_agent_with_callsheet_tools_send_one_call(notebook: Notebook) -> None:
    model = ScriptedModel(
        replies=[calls("notebook_add_note", text="hello there"), AIMessage("Done."), AIMessage("Done.")]
    )
    app: Any = create_agent(model, middleware=[CallsheetTools(notebook.agents)], checkpointer=InMemorySaver())
    (question,) = await asked(app)
    done, told = await both(*(app.ainvoke(Command(resume={question: {"type": "approve"}}), THREAD) for _ in range(2)))
    assert (len(done), len(told), notebook.notes) == (1, 1, ["hello there"])


async def test_runs_one_after_the_other_are_not_refused(notebook: Notebook) -> None:
    """A wrong answer, a further question at the same checkpoint, a thread beside, another request."""
    app: Any = create_supervisor(notebook.agents).compile(checkpointer=InMemorySaver())
    for thread in ({"configurable": {"thread_id": name}} for name in ("1", "2", "1")):
        asked = HumanMessage("Add a note with the text 'one'. Add a note with the text 'two'.")
        state = await app.ainvoke({"messages": [asked]}, thread)
        while waiting := state.get("__interrupt__"):
            state = await app.ainvoke(Command(resume={waiting[0].id: "what?"}), thread)
            (again,) = [one for one in state["__interrupt__"] if "problem" in one.value]
            state = await app.ainvoke(Command(resume={again.id: {"type": "approve"}}), thread)
    assert sorted(notebook.notes) == ["one"] * 3 + ["two"] * 3


PROGRAM = '''
import asyncio, sys, time
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from callsheet import create_supervisor
from small import outside

FOLDER, QUESTION = Path(sys.argv[1]), sys.argv[2]


def add_note(text: str) -> str:
    """Adds a note with a text to the notebook."""
    (FOLDER / "begun").touch()
    time.sleep(3600)


async def main() -> None:
    async with AsyncSqliteSaver.from_conn_string(str(FOLDER / "runs.sqlite")) as saver:
        app = create_supervisor(outside({"notebook": [add_note]})).compile(checkpointer=saver)
        thread = {"configurable": {"thread_id": "1"}}
        await app.ainvoke(Command(resume={QUESTION: {"type": "approve"}}), thread, durability="sync")


asyncio.run(main())
'''


@pytest.mark.server
@pytest.mark.timeout(300)
async def test_another_process_is_refused_while_the_first_is_alive(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is alive this one is refused; once it was killed, a person is asked whether its call took effect."""
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        app: Any = create_supervisor(notebook.agents).compile(checkpointer=saver)
        (question,) = await asked(app)
        other = Forked(["-c", PROGRAM, str(tmp_path), question], stderr=subprocess.PIPE)
        try:
            while not (tmp_path / "begun").exists():
                assert other.poll() is None, other.communicate()
                await asyncio.sleep(0.05)
            with pytest.raises(ConcurrentRunError, match=f"process {other.pid} on "):
                await app.ainvoke(Command(resume={question: {"type": "approve"}}), THREAD)
        finally:
            other.kill()
            other.communicate()
        with monkeypatch.context() as elsewhere:  # where another process may have that number, or none
            elsewhere.setattr("callsheet.graphs.process_identity.machine", lambda: "a container of the same name")
            with pytest.raises(ConcurrentRunError, match=f"process {other.pid} on "):
                await app.ainvoke(None, THREAD)
        (unknown,) = (await app.ainvoke(None, THREAD))["__interrupt__"]
        assert (unknown.value["type"], notebook.notes) == ("unknown_outcome", [])
        done = await app.ainvoke(Command(resume={unknown.id: decision_on("edit", unknown.value)}), THREAD)
        assert (done["results"]["1"]["status"], notebook.notes) == ("done", ["hello there"])
