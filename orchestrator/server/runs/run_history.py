"""Past runs: plan, selected tools, calls and answers, as far as a user may see them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.requests import Request

from callsheet.agents import Question
from callsheet.agents.planning.user_question import question_text
from callsheet.orchestrator.server.explorer.json_answers import Link, shown_line, shown_text
from callsheet.orchestrator.server.explorer.search_results import link
from callsheet.orchestrator.server.explorer.site import Seen

MOST_RUNS = 50
_COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens")
WITHHELD = "withheld: it is about tools that you may not see"
Text = Annotated[str, AfterValidator(shown_text)]
Line = Annotated[str, AfterValidator(shown_line)]


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation with the supervisor.

    Attributes:
        id: Its id.
        request: The last request.
        status: LangGraph's status: ``idle``, ``busy``, ``interrupted`` or ``error``.
        at: Time of the last change, in ISO 8601.
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
        at: Time, in ISO 8601.
        waiting: Number of pending questions.
    """

    values: Mapping[str, Any]
    at: str
    waiting: int = 0


class Runs(Protocol):
    """A store of past runs; each method answers for the user of the request."""

    async def recent(self, request: Request) -> Sequence[Thread]:
        """The user's last threads, the latest first."""
        ...

    async def history(self, request: Request, thread: str) -> Sequence[Moment]:
        """The history of a thread, the latest moment first; empty if there is no such thread."""
        ...

    async def waiting(self, request: Request) -> int | None:
        """Number of pending questions in all threads; None if the user may not know."""
        ...


class _Shown(BaseModel):
    """A part of an answer with texts that are safe to display; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CallShown(_Shown):
    """One call of a worker."""

    tool: Link
    args: Text
    answer: Text = Field(validation_alias="output")
    error: Text
    kind: str = ""
    effect: str = ""
    seconds: float
    files: int


class Picked(_Shown):
    """A tool that was selected for a step, with its score and the tools that led to it."""

    tool: Link
    score: float
    via: tuple[Line, ...]


class StepShown(_Shown):
    """One step of a plan with its result; ``status`` is that of ``StepResult``, or ``waiting``."""

    id: Line
    text: Text
    depends_on: tuple[Line, ...]
    status: str
    attempts: int = 0
    result: Text = ""
    error: Text = ""
    seconds: float = 0.0
    calls: tuple[CallShown, ...] = ()
    picked: tuple[Picked, ...] = ()


class RevisionShown(_Shown):
    """A change of the plan, or one that was refused, with its reason."""

    wave: int
    added: tuple[Line, ...]
    changed: tuple[Line, ...]
    dropped: tuple[Line, ...]
    reason: Text
    refused: bool = False


class RunShown(_Shown):
    """One request with its plan.

    Attributes:
        request: The request.
        at: Time of the first checkpoint, in ISO 8601.
        seconds: From the first checkpoint to the last; None if there is only one.
        note: How the plan was made.
        answer: The answer; empty if there is none yet.
        waiting: Number of pending questions.
        steps: The steps.
        question: The pending question about the request; empty if there is none.
        revisions: Changes of the plan.
        usage: Model calls and tokens; empty if no model was called.
    """

    request: Text
    at: str
    seconds: float | None
    note: Text
    answer: Text
    waiting: int
    steps: tuple[StepShown, ...]
    question: Text
    revisions: tuple[RevisionShown, ...]
    usage: Mapping[str, int]


def runs_of(seen: Seen, history: Iterable[Moment]) -> tuple[RunShown, ...]:
    """The requests of one thread, the latest first.

    Args:
        seen: What the user may see: steps with hidden agents or tools keep only their place in the plan.
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
    usage = state.get("usage") or {}
    return RunShown(
        request=str(state.get("request", "")),
        at=first.at,
        seconds=_between(first.at, last.at),
        note=str(plan.get("note") or ""),
        answer=WITHHELD if withheld else _answer(state.get("messages") or ()),
        waiting=last.waiting,
        steps=steps,
        question="" if withheld else _question(last),
        revisions=() if withheld else tuple(map(RevisionShown.model_validate, state.get("revisions") or ())),
        usage={name: usage[name] for name in _COUNTS} if usage.get("calls") else {},
    )


def _question(moment: Moment) -> str:
    """The question of the planner or the reviser, with its choices."""
    asked = moment.values.get("question") or {}
    return question_text(Question(**asked)) if moment.waiting and asked.get("question") else ""


def _step(
    seen: Seen, step: Mapping[str, Any], result: Mapping[str, Any] | None, picked: Mapping[str, Any] | None
) -> StepShown:
    plain = {**step, "status": result["status"] if result else "waiting"}
    if not all(map(seen.may_see, _named(result or {}, picked or {}))):
        return StepShown.model_validate({**plain, "error": WITHHELD})
    calls = tuple(_call(seen, call) for call in (result or {}).get("calls", ()))
    tools = [tool for agent in (picked or {}).get("agents", ()) for tool in agent["tools"]]
    return StepShown.model_validate(
        {
            **plain,
            **{name: result[name] for name in ("attempts", "result", "error") if result},
            "seconds": sum(call.seconds for call in calls),
            "calls": calls,
            "picked": tuple(
                Picked(tool=link(t["id"], seen.catalog), score=t["score"], via=t["via"][:-1]) for t in tools
            ),
        }
    )


def _named(result: Mapping[str, Any], picked: Mapping[str, Any]) -> set[str]:
    """All agents and tools of a step."""
    calls, agents = result.get("calls", ()), picked.get("agents", ())
    named = {*result.get("agents", ()), *result.get("tools", ()), *(agent["id"] for agent in agents)}
    named |= {call["tool"] for call in calls} | {call["agent"] for call in calls}
    return named | {node for agent in agents for tool in agent["tools"] for node in (tool["id"], *tool["via"])}


def _call(seen: Seen, call: Mapping[str, Any]) -> CallShown:
    return CallShown.model_validate(
        {
            **call,
            "tool": link(call["tool"], seen.catalog),
            "args": json.dumps(call["args"], ensure_ascii=False, indent=2, default=str),
            "seconds": round(call["seconds"], 3),
            "files": len(call.get("files", ())),
        }
    )


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
