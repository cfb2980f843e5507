"""Past and present runs: their states, and who stores them and carries them out."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from langgraph.types import Interrupt
from starlette.requests import Request
from typing_extensions import TypedDict

MOST_RUNS, MOST_SNAPSHOTS = 50, 100


class Thread(TypedDict):
    """A conversation with the supervisor: its last request, and the time of its last change in ISO 8601.

    ``status`` says how the request ended (``ending``), or is LangGraph's ``busy``, ``interrupted`` or ``error``; or
    ``unfinished`` if it has no answer yet and may go on elsewhere.
    """

    id: str
    request: str
    status: str
    at: str


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The supervisor's state at one checkpoint.

    Attributes:
        values: The state.
        at: Time, in ISO 8601.
        questions: The pending questions.
        running: Whether the run goes on.
        draft: The answer as far as a model has written it.
        trouble: What ended the run; empty if nothing did.
    """

    values: Mapping[str, Any]
    at: str
    questions: Sequence[Interrupt] = ()
    running: bool = False
    draft: str = ""
    trouble: str = ""


class Runs(Protocol):
    """Past runs and new ones; each method answers for the user of the HTTP request."""

    async def recent(self, request: Request) -> Sequence[Thread]:
        """The user's last threads, the latest first."""
        ...

    async def history(self, request: Request, thread: str) -> Sequence[RunSnapshot]:
        """The history of a thread, the latest state first; empty if there is no such thread."""
        ...

    async def waiting(self, request: Request) -> int | None:
        """Number of pending questions in all threads; None if the user may not know."""
        ...

    async def start(self, request: Request, thread: str | None, text: str) -> str:
        """Starts a request, in a thread or in a new one, and returns the thread's id.

        Raises:
            RefusedError: There is no such thread, or its last run has not ended.
        """
        ...

    async def resume(self, request: Request, thread: str, answers: Mapping[str, Any]) -> None:
        """Answers questions by the ids of their interrupts, or without answers continues a run that stopped.

        Raises:
            RefusedError: There is nothing to continue, or the run goes on.
        """
        ...

    async def cancel(self, request: Request, thread: str) -> None:
        """Stops a run; it can be continued."""
        ...

    def watch(self, request: Request, thread: str) -> AsyncIterator[RunSnapshot]:
        """The run of a thread as it goes, until it ends or waits for a person; empty if none goes on."""
        ...


def is_echo(values: Mapping[str, Any]) -> bool:
    """Whether a state is that of an answered request, to which the next one was added."""
    messages = values.get("messages") or ()
    return bool(values.get("usage") and messages) and field_of([*messages][-1], "type") == "human"


def field_of(message: Any, name: str) -> Any:
    """A field of a message, which is an object here and plain values from a server."""
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def with_finished(values: Any, channel: str, written: Any) -> None:
    """Adds what finished steps wrote to a state while others wait."""
    if channel in ("results", "selections") and isinstance(written, Mapping):
        values[channel] = {**(values.get(channel) or {}), **written}


MODES = ("values", "custom", "messages")
"""Stream modes of LangGraph that make a live run."""
_RUNNING: Mapping[str, Any] = {"status": "running", "calls": (), "result": "", "error": "", "attempts": 1}


class LiveRun:
    """Folds the stream of a run into the state that its checkpoints will have.

    Args:
        snapshot: Where it starts: the request, or the state at which a run continues.
    """

    def __init__(self, snapshot: RunSnapshot) -> None:
        self._snapshot = replace(snapshot, running=True, questions=())
        self._steps: dict[str, dict[str, Any]] = {}
        self._selections: dict[str, Any] = {}
        self._draft = ""

    @property
    def snapshot(self) -> RunSnapshot:
        """The run now."""
        values = self._snapshot.values
        told = {
            **values,
            "results": {**(values.get("results") or {}), **self._steps},
            "selections": {**(values.get("selections") or {}), **self._selections},
        }
        return replace(self._snapshot, values=told, draft=self._draft)

    def end(self, last: RunSnapshot) -> None:
        """Ends it, at the last state of its thread."""
        self._snapshot, self._steps, self._selections, self._draft = last, {}, {}, ""

    def fail(self, trouble: str) -> None:
        """Ends it where it is, with what went wrong."""
        self._steps = {name: step for name, step in self._steps.items() if step["status"] != "running"}
        self._snapshot = replace(self._snapshot, running=False, trouble=trouble)

    def take(self, namespace: Sequence[str], mode: str, data: Any) -> None:
        """Takes a part of the stream: its namespace, empty for the supervisor's own, its mode, and the data."""
        if mode == "values" and not namespace:
            self._state(data)
        elif mode == "custom" and isinstance(data, Mapping):
            self._event(data)
        elif mode == "messages" and not namespace:
            self._message(data)

    def _state(self, values: Mapping[str, Any]) -> None:
        """Takes the supervisor's state after a wave, which is final."""
        if "__interrupt__" in values or not values.get("run") or is_echo(values):
            return
        self._snapshot, self._steps = replace(self._snapshot, values=values), {}

    def _event(self, event: Mapping[str, Any]) -> None:
        step_id, kind = str(event.get("step_id", "")), event.get("event")
        values = self._snapshot.values
        if kind == "plan":
            plan = {name: value for name, value in event.items() if name not in ("event", "said")}
            self._snapshot = replace(self._snapshot, values={**values, "plan": plan})
        elif kind == "revision":
            revisions = [*(values.get("revisions") or ()), dict(event)]
            self._snapshot = replace(self._snapshot, values={**values, "revisions": revisions})
        elif kind == "picked":
            self._selections[step_id] = event["selection"]
            calls = self._steps.get(step_id, _RUNNING)["calls"]
            self._steps[step_id] = {**_RUNNING, "calls": calls, "attempts": event.get("attempt", 1)}
        elif kind in ("tool_started", "tool_finished"):
            step = self._steps.setdefault(step_id, {**_RUNNING})
            step["calls"] = (_started if kind == "tool_started" else _finished)(step["calls"], event)
        elif kind == "step":
            self._steps[step_id] = dict(event["result"])

    def _message(self, data: Any) -> None:
        """Takes a part of the answer while a model writes it."""
        message, about = data
        content = field_of(message, "content")
        if about.get("langgraph_node") == "answer" and field_of(message, "type") == "AIMessageChunk":
            self._draft += content if isinstance(content, str) else ""


def _started(calls: Sequence[Any], event: Mapping[str, Any]) -> list[Any]:
    call = {name: event[name] for name in ("agent", "tool", "args") if name in event}
    call |= {"id": event["call_id"], "began": event.get("began", time.time()), "running": True}
    return [*(one for one in calls if one.get("id") != call["id"]), call]


def _finished(calls: Sequence[Any], event: Mapping[str, Any]) -> list[Any]:
    said, failed = str(event.get("output", "")), event.get("status") == "error"

    def ended(call: Mapping[str, Any]) -> Mapping[str, Any]:
        if call.get("id") != event["call_id"]:
            return call
        took = event.get("seconds") or time.time() - call["began"]
        known = {name: event[name] for name in ("kind", "effect") if name in event}
        told = {"error": said} if failed else {"output": said}
        return {**call, **known, **told, "seconds": took, "running": False}

    return [ended(call) for call in calls]
