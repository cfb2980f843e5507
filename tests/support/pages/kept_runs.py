"""Past runs as somebody kept them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from langgraph.types import Interrupt, StateSnapshot
from starlette.requests import Request

from callsheet.agents import Question
from callsheet.agents.calls.plan import user_question
from callsheet.graphs import UnknownNameError
from callsheet.orchestrator.run_events import RunEvent
from callsheet.orchestrator.server.runs.runs import Runs, Thread, missing_thread, no_thread

BEGUN = datetime(2026, 1, 1, 10, tzinfo=UTC).timestamp()
CALL = {"agent": "units", "tool": "units/convert_length", "args": {"value": 3}, "output": "4.8 km", "error": ""}
RESULT = {
    "id": "1",
    "text": "convert",
    "status": "done",
    "agents": ["units"],
    "tools": ["units/convert_length"],
    "calls": [{**CALL, "kind": "", "effect": "reported", "seconds": 0.25, "files": ["/tmp/x"]}],
    "result": "4.8 km",
    "error": "",
}
PICKED = {
    "query": "convert",
    "agents": [
        {"id": "units", "score": 0.7, "tools": [{"id": "units/convert_length", "score": 0.7, "via": ["a", "b"]}]}
    ],
    "verdict": "found",
    "why": {"units/convert_length": "used by a"},
}
STEPS = [{"id": "1", "text": "convert", "depends_on": []}, {"id": "2", "text": "write", "depends_on": ["1"]}]


ASKED = user_question(Question(question="Which file?", choices=["a.txt", "b.txt"]))


def moment(run: str, at: int, waiting: int = 0, **values: Any) -> StateSnapshot:
    """The state of a request ``at`` seconds after its start."""
    state = {"run": run, "request": f"request {run}", "begun": BEGUN, "plan": {"steps": STEPS, "note": "by rules"}}
    questions = tuple(Interrupt(ASKED, id=str(i)) for i in range(waiting))
    time = datetime.fromtimestamp(BEGUN + at, UTC).isoformat()
    return StateSnapshot({**state, **values}, (), {}, None, time, None, (), questions)


def with_values(state: StateSnapshot, **values: Any) -> StateSnapshot:
    """The state with other values."""
    return state._replace(values={**dict(state.values), **values})


ENDED = moment(
    "b",
    9,
    results={"1": RESULT},
    selections={"1": PICKED},
    messages=[{"type": "ai", "content": "4.8 km"}],
    ended="done",
)

REVISION = {"wave": 1, "added": ["3"], "changed": [], "dropped": ["2"], "reason": "the file is <b>missing</b>"}
USAGE = {"calls": 3, "input_tokens": 300, "output_tokens": 30, "cached_tokens": 0, "by_role": {}, "by_step": {}}
WORKED: Any = {"calls": 2, "input_tokens": 5_200, "output_tokens": 340, "cached_tokens": 4_000, "seconds": 1.5}
PLANNED: Any = {"calls": 1, "input_tokens": 800, "output_tokens": 90, "cached_tokens": 0, "seconds": 0.5}
USED = with_values(ENDED, results={"1": {**RESULT, "usage": WORKED}}, spent={"plan 0": PLANNED})
REVISED = moment("c", 11, revisions=[REVISION], usage=USAGE)
ASKING = moment("d", 12, waiting=1)


class Kept(Runs):
    """Runs as somebody kept them."""

    def __init__(self, states: Sequence[StateSnapshot]) -> None:
        super().__init__(_KeptThread(states))


class _KeptThread:
    """A backend with one thread, in which no run goes on."""

    def __init__(self, states: Sequence[StateSnapshot]) -> None:
        self._states = states

    async def recent(self, request: Request) -> Sequence[Thread]:
        return [Thread(id="t", request="request b", status="done", at="2026-01-01T10:00:09+00:00")]

    async def waiting(self, request: Request) -> None: ...

    @asynccontextmanager
    async def app(self, request: Request, thread: str) -> AsyncIterator[Any]:
        if thread != "t":
            raise UnknownNameError(no_thread(thread))
        yield self

    async def aget_state(self, config: Any) -> StateSnapshot:
        return self._states[0]

    async def aget_state_history(self, config: Any, *, limit: int) -> AsyncIterator[StateSnapshot]:
        for state in self._states:
            yield state

    async def begin(self, request: Request, thread: str | None, given: Any) -> str:
        raise missing_thread(str(thread))

    async def events(self, request: Request, thread: str) -> AsyncIterator[RunEvent]:
        for event in ():
            yield event

    async def cancel(self, request: Request, thread: str) -> None:
        raise missing_thread(thread)
