"""Past runs: what was planned, picked, called and answered, as far as a user may see it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from starlette.requests import Request

from callsheet.agents import Question
from callsheet.agents.planning.user_question import question_text
from callsheet.orchestrator.server.explorer.json_answers import Link, shown_line, shown_text
from callsheet.orchestrator.server.explorer.search_results import link
from callsheet.orchestrator.server.explorer.site import Seen

MOST_RUNS = 50
_COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens")
WITHHELD = "withheld: it is about tools that you may not see"


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation with the supervisor.

    Attributes:
        id: Its id.
        request: What was asked last.
        status: ``idle``, ``busy``, ``interrupted`` or ``error``, in LangGraph's words.
        at: When it was last worked on, as ISO 8601.
    """

    id: str
    request: str
    status: str
    at: str


@dataclass(frozen=True, slots=True)
class Moment:
    """The supervisor's state at one checkpoint.

    Attributes:
        values: The state.
        at: When, as ISO 8601.
        waiting: How many questions wait for a person.
    """

    values: Mapping[str, Any]
    at: str
    waiting: int = 0


class Runs(Protocol):
    """Where past runs are kept."""

    async def recent(self, request: Request) -> Sequence[Thread]:
        """The last threads, the latest first.

        Args:
            request: Who asks: only that one's threads are given.
        """
        ...

    async def history(self, request: Request, thread: str) -> Sequence[Moment]:
        """What a thread went through, the latest first; empty if there is no such thread.

        Args:
            request: Who asks.
            thread: The thread's id.
        """
        ...

    async def waiting(self, request: Request) -> int | None:
        """How many questions wait for a person, in all threads; None where whoever asks may not know.

        Args:
            request: Who asks.
        """
        ...


@dataclass(frozen=True, slots=True)
class CallShown:
    """One call of a worker."""

    tool: Link
    args: str
    answer: str
    error: str
    kind: str
    effect: str
    seconds: float
    files: int


@dataclass(frozen=True, slots=True)
class Picked:
    """A tool that was picked for a step, with its score and the tools that brought it."""

    tool: Link
    score: float
    via: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepShown:
    """One step of a plan with what became of it.

    Attributes:
        id: Its id.
        text: What was to be done.
        depends_on: The steps that it waits for.
        status: As in ``StepResult``, or ``waiting``.
        attempts: How many selections were tried.
        result: The worker's answer.
        error: Why it was not done.
        seconds: How long its calls took, together.
        calls: What was called.
        picked: What was picked.
    """

    id: str
    text: str
    depends_on: tuple[str, ...]
    status: str
    attempts: int = 0
    result: str = ""
    error: str = ""
    seconds: float = 0.0
    calls: tuple[CallShown, ...] = ()
    picked: tuple[Picked, ...] = ()


@dataclass(frozen=True, slots=True)
class RevisionShown:
    """A change of the plan, or one that was refused, with its reason."""

    wave: int
    added: tuple[str, ...]
    changed: tuple[str, ...]
    dropped: tuple[str, ...]
    reason: str
    refused: bool


@dataclass(frozen=True, slots=True)
class RunShown:
    """One request with its plan.

    Attributes:
        request: What was asked.
        at: When, as ISO 8601.
        seconds: From the first checkpoint to the last; None where there is just one.
        note: How the plan came about.
        answer: The answer; empty as long as there is none.
        waiting: How many questions wait for a person.
        steps: The steps.
        question: The question about the request that waits for a person; empty where there is none.
        revisions: How the plan was changed.
        usage: Model calls and tokens; empty where no model was asked.
    """

    request: str
    at: str
    seconds: float | None
    note: str
    answer: str
    waiting: int
    steps: tuple[StepShown, ...] = field(default=())
    question: str = ""
    revisions: tuple[RevisionShown, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)


def runs_of(seen: Seen, history: Iterable[Moment]) -> tuple[RunShown, ...]:
    """The requests of one thread, the latest first.

    Args:
        seen: What may be seen: a step that had to do with anything else keeps only its place in the plan.
        history: The thread's moments, the latest first.
    """
    of_run: dict[str, list[Moment]] = {}
    for moment in history:
        if run := moment.values.get("run"):
            of_run.setdefault(str(run), []).append(moment)
    return tuple(_run(seen, moments[0], moments[-1]) for moments in of_run.values())


def _run(seen: Seen, last: Moment, first: Moment) -> RunShown:
    state = last.values
    plan: Mapping[str, Any] = state.get("plan") or {}
    results, selections = state.get("results") or {}, state.get("selections") or {}
    steps = tuple(_step(seen, s, results.get(s["id"]), selections.get(s["id"])) for s in plan.get("steps", ()))
    withheld = any(step.error == WITHHELD for step in steps)
    return RunShown(
        request=shown_text(str(state.get("request", ""))),
        at=first.at,
        seconds=_between(first.at, last.at),
        note=shown_text(str(plan.get("note") or "")),
        answer=WITHHELD if withheld else shown_text(_answer(state.get("messages") or ())),
        waiting=last.waiting,
        steps=steps,
        question="" if withheld else _question(last),
        revisions=() if withheld else tuple(map(_revision, state.get("revisions") or ())),
        usage=_usage(state.get("usage") or {}),
    )


def _question(moment: Moment) -> str:
    """What the planner or the reviser asks, with its choices."""
    asked = moment.values.get("question") or {}
    return shown_text(question_text(Question(**asked))) if moment.waiting and asked.get("question") else ""


def _revision(revision: Mapping[str, Any]) -> RevisionShown:
    added, changed, dropped = (tuple(map(shown_line, revision[name])) for name in ("added", "changed", "dropped"))
    reason, refused = shown_text(revision["reason"]), bool(revision.get("refused"))
    return RevisionShown(revision["wave"], added, changed, dropped, reason, refused)


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    return {name: usage[name] for name in _COUNTS} if usage.get("calls") else {}


def _step(
    seen: Seen, step: Mapping[str, Any], result: Mapping[str, Any] | None, picked: Mapping[str, Any] | None
) -> StepShown:
    shown = StepShown(
        id=shown_line(step["id"]),
        text=shown_text(step["text"]),
        depends_on=tuple(map(shown_line, step["depends_on"])),
        status=result["status"] if result else "waiting",
    )
    if not all(map(seen.may_see, _named(result or {}, picked or {}))):
        return StepShown(shown.id, shown.text, shown.depends_on, shown.status, error=WITHHELD)
    calls = tuple(_call(seen, call) for call in (result or {}).get("calls", ()))
    return StepShown(
        shown.id,
        shown.text,
        shown.depends_on,
        shown.status,
        attempts=result["attempts"] if result else 0,
        result=shown_text(result["result"]) if result else "",
        error=shown_text(result["error"]) if result else "",
        seconds=sum(call.seconds for call in calls),
        calls=calls,
        picked=tuple(_picked(seen, tool) for agent in (picked or {}).get("agents", ()) for tool in agent["tools"]),
    )


def _named(result: Mapping[str, Any], picked: Mapping[str, Any]) -> set[str]:
    """Every agent and tool that a step had to do with."""
    calls, agents = result.get("calls", ()), picked.get("agents", ())
    named = {*result.get("agents", ()), *result.get("tools", ()), *(agent["id"] for agent in agents)}
    named |= {call["tool"] for call in calls} | {call["agent"] for call in calls}
    return named | {node for agent in agents for tool in agent["tools"] for node in (tool["id"], *tool["via"])}


def _call(seen: Seen, call: Mapping[str, Any]) -> CallShown:
    return CallShown(
        tool=link(call["tool"], seen.catalog),
        args=shown_text(json.dumps(call["args"], ensure_ascii=False, indent=2, default=str)),
        answer=shown_text(call["output"]),
        error=shown_text(call["error"]),
        kind=call.get("kind", ""),
        effect=call.get("effect", ""),
        seconds=round(call["seconds"], 3),
        files=len(call.get("files", ())),
    )


def _picked(seen: Seen, tool: Mapping[str, Any]) -> Picked:
    return Picked(link(tool["id"], seen.catalog), tool["score"], tuple(map(shown_line, tool["via"][:-1])))


def _answer(messages: Sequence[Any]) -> str:
    """The text of the last message if it is an answer; messages are objects here, and plain values from a server."""
    if not messages:
        return ""
    last = messages[-1]
    if isinstance(last, Mapping):
        content = last.get("content") if last.get("type") == "ai" else ""
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return str(last.text) if last.type == "ai" else ""


def _between(start: str, end: str) -> float | None:
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except ValueError:
        return None
    return round(seconds, 3) if seconds > 0 else None
