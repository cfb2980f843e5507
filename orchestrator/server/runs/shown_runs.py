"""A run as the page shows it: plan, selected tools, calls and answers, as far as a user may see them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from callsheet.orchestrator.server.explorer.answers.json_answers import Link
from callsheet.orchestrator.server.explorer.answers.search_results import fit, link
from callsheet.orchestrator.server.explorer.site import Seen
from callsheet.orchestrator.server.runs.pending_questions import (
    WITHHELD,
    Line,
    QuestionShown,
    Shown,
    Text,
    question_shown,
)
from callsheet.orchestrator.server.runs.run_costs import ModelUsageShown, RunCosts, UsageShown
from callsheet.orchestrator.server.runs.run_history import Moment


class CallShown(Shown):
    """One call of a worker; ``began`` in seconds since 1970, 0 if it is not known."""

    tool: Link
    args: Text
    answer: Text = Field(validation_alias="output")
    error: Text
    kind: str = ""
    effect: str = ""
    seconds: float
    began: float = 0.0
    running: bool = False
    files: int


class Picked(Shown):
    """A tool that was selected for a step: why in words, its score, and the tools that led to it."""

    tool: Link
    why: Text
    score: float
    via: tuple[Line, ...]


class StepShown(Shown):
    """One step of a plan with its result.

    ``status`` is that of ``StepResult``, or ``waiting``, ``running``, ``needs_approval``. ``wave`` counts from 1,
    and is 0 for a step that was not started.
    """

    id: Line
    text: Text
    depends_on: tuple[Line, ...]
    status: str
    wave: int = 0
    attempts: int = 0
    result: Text = ""
    error: Text = ""
    seconds: float = 0.0
    calls: tuple[CallShown, ...] = ()
    picked: tuple[Picked, ...] = ()
    usage: UsageShown | None = None


class RevisionShown(Shown):
    """A change of the plan, or one that was refused, with its reason."""

    wave: int
    added: tuple[Line, ...]
    changed: tuple[Line, ...]
    dropped: tuple[Line, ...]
    reason: Text
    refused: bool = False


class RunShown(Shown):
    """One request with its plan.

    Attributes:
        id: Its id; empty for a moment at its start.
        request: The request.
        status: ``running``, ``waiting`` for a person, ``done``, or ``stopped`` before its end.
        at: Time of the first checkpoint, in ISO 8601.
        began: Its start, in seconds since 1970; 0 if it is not known.
        seconds: From the first checkpoint to the last; None if there is only one.
        note: How the plan was made.
        answer: The answer; what is written of it so far; empty if there is none yet.
        trouble: What ended it before its end; empty if nothing did.
        questions: The pending questions.
        steps: The steps.
        revisions: Changes of the plan.
        usage: What its models cost; None if no model was called.
        models: The usage by role and model.
    """

    id: Line
    request: Text
    status: str
    at: str
    began: float
    seconds: float | None
    note: Text
    answer: Text
    trouble: Text
    questions: tuple[QuestionShown, ...]
    steps: tuple[StepShown, ...]
    revisions: tuple[RevisionShown, ...]
    usage: UsageShown | None
    models: tuple[ModelUsageShown, ...]


def runs_of(seen: Seen, history: Iterable[Moment]) -> tuple[RunShown, ...]:
    """The requests of one thread, the latest first.

    Args:
        seen: What the user may see: steps with hidden agents or tools keep only their place in the plan.
        history: The thread's moments, the latest first.
    """
    of_run: dict[str, list[Moment]] = {}
    for moment in history:
        if (run := moment.values.get("run")) and not is_echo(moment.values):
            of_run.setdefault(str(run), []).append(moment)
    return tuple(run_of(seen, moments[0], moments[-1]) for moments in of_run.values())


def is_echo(values: Mapping[str, Any]) -> bool:
    """Whether a state is that of an answered request, to which the next one was added."""
    messages = values.get("messages") or ()
    return bool(values.get("usage") and messages) and field_of([*messages][-1], "type") == "human"


def run_of(seen: Seen, last: Moment, begin: Moment | None = None) -> RunShown:
    """One request, from its last moment and its first one."""
    first = begin or last
    state = last.values
    plan: Mapping[str, Any] = state.get("plan") or {}
    results, selections = state.get("results") or {}, state.get("selections") or {}
    asked = tuple(question_shown(seen, question.id, question.value) for question in last.questions)
    planned: Sequence[Mapping[str, Any]] = plan.get("steps") or ()
    waves: Sequence[Sequence[str]] = state.get("waves") or ()
    wave_of = {step: n for n, wave in enumerate(waves, 1) for step in wave}
    statuses = {one.step: one.status for one in asked if one.step}
    costs, told = RunCosts(state, seen.prices), {s["id"]: {**s, "wave": wave_of.get(s["id"], 0)} for s in planned}
    steps: tuple[StepShown, ...] = tuple(
        _step(seen, step, results.get(name), selections.get(name), statuses, costs) for name, step in told.items()
    )
    withheld = any(step.error == WITHHELD for step in steps)
    answer = _answer(state.get("messages") or ())
    began = float(state.get("begun") or 0.0)
    return RunShown(
        id=str(state.get("run") or ""),
        request=str(state.get("request", "")),
        status="running" if last.running else "waiting" if asked else "done" if answer else "stopped",
        at=first.at,
        began=began,
        seconds=round(time.time() - began, 3) if last.running and began else _between(first.at, last.at),
        note=str(plan.get("note") or ""),
        answer=WITHHELD if withheld else answer or last.draft,
        trouble=WITHHELD if withheld and last.trouble else last.trouble,
        questions=asked,
        steps=steps,
        revisions=() if withheld else tuple(map(RevisionShown.model_validate, state.get("revisions") or ())),
        usage=costs.total,
        models=costs.models,
    )


def run_answered(last: Moment) -> bool:
    """Whether a run has its answer."""
    return bool(_answer(last.values.get("messages") or ()))


def run_ended(last: Moment) -> bool:
    """Whether nothing of a run is left to do: it is answered, and no step has failed."""
    results = last.values.get("results") or {}
    left = any(result["status"] in ("failed", "skipped") for result in results.values())
    return run_answered(last) and not (last.questions or left)


def _step(
    seen: Seen,
    step: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    picked: Mapping[str, Any] | None,
    waiting: Mapping[str, str],
    costs: RunCosts,
) -> StepShown:
    plain = {**step, "status": result["status"] if result else waiting.get(step["id"], "waiting")}
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
            "usage": costs.step(step["id"]),
            "picked": tuple(
                Picked(tool=link(t["id"], seen.catalog), why=_why(t, n), score=t["score"], via=t["via"][:-1])
                for n, t in enumerate(tools)
            ),
        }
    )


def _why(tool: Mapping[str, Any], place: int) -> str:
    """Why a tool was selected, in words."""
    if len(tool["via"]) > 1:
        other, inferred = tool["via"][-2], tool.get("inferred") or ""
        why = f"{other} needs it" if tool.get("required") else f"{other} may need it"
        return f"{why}, inferred: {inferred}" if inferred else why
    return f"{fit(tool['score'])}, and best of all" if place == 0 else fit(tool["score"])


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
    """The text of the last message if it is an answer."""
    if not messages or field_of(messages[-1], "type") != "ai":
        return ""
    content = field_of(messages[-1], "content")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def field_of(message: Any, name: str) -> Any:
    """A field of a message, which is an object here and plain values from a server."""
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _between(start: str, end: str) -> float | None:
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except ValueError:
        return None
    return round(seconds, 3) if seconds > 0 else None
