"""Past and present runs: their states, who stores them and carries them out, and a run as JSON for the page."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from langgraph.types import Interrupt
from typing_extensions import TypedDict

from callsheet.agents import Usage
from callsheet.agents.calls import question_text
from callsheet.agents.calls.plan import KIND
from callsheet.agents.calls.review import each_call, flat
from callsheet.agents.work.media import picture_type
from callsheet.graphs import UnknownNameError
from callsheet.orchestrator.plans import usage_report
from callsheet.orchestrator.server.visible_catalog import Json, VisibleCatalog, fit, shown_line, shown_text
from callsheet.orchestrator.state import ending

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
    """The supervisor's state at one checkpoint, and its time in ISO 8601.

    ``draft`` is the answer as far as a model has written it, ``trouble`` what ended the run, if anything did.
    """

    values: Mapping[str, Any]
    at: str
    questions: Sequence[Interrupt] = ()
    running: bool = False
    draft: str = ""
    trouble: str = ""


def is_echo(values: Mapping[str, Any]) -> bool:
    """Returns whether a state is that of an answered request, to which the next one was added."""
    messages = values.get("messages") or ()
    return bool(values.get("usage") and messages) and field_of([*messages][-1], "type") == "human"


def field_of(message: Any, name: str) -> Any:
    """Returns a field of a message, which is an object here and plain values from a server."""
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def with_finished(values: Any, channel: str, written: Any) -> None:
    """Adds what finished steps wrote to a state while others wait."""
    if channel in ("results", "selections") and isinstance(written, Mapping):
        values[channel] = {**(values.get(channel) or {}), **written}


MODES = ("values", "custom", "messages")
"""Stream modes of LangGraph that make a live run."""
_RUNNING: Mapping[str, Any] = {"status": "running", "calls": (), "result": "", "error": ""}


class LiveRun:
    """Folds the stream of a run into the state that its checkpoints will have.

    It starts from the request, or from the state at which a run continues.
    """

    def __init__(self, snapshot: RunSnapshot) -> None:
        self._snapshot = replace(snapshot, running=True, questions=())
        self._steps: dict[str, dict[str, Any]] = {}
        self._selections: dict[str, Any] = {}
        self._draft = ""
        self._changed = asyncio.Event()

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

    async def states(self) -> AsyncIterator[RunSnapshot]:
        """Yields the run as it goes, until it ends or waits for a person.

        A slow reader misses states, but not the last.
        """
        while True:
            changed, snapshot = self._changed, self.snapshot
            yield snapshot
            if not snapshot.running:
                return
            await changed.wait()

    def end(self, last: RunSnapshot) -> None:
        """Ends it, at the last state of its thread."""
        self._snapshot, self._steps, self._selections, self._draft = last, {}, {}, ""
        self._tell()

    def fail(self, trouble: str) -> None:
        """Ends it where it is, with what went wrong."""
        self._steps = {name: step for name, step in self._steps.items() if step["status"] != "running"}
        self._snapshot = replace(self._snapshot, running=False, trouble=trouble)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def take(self, namespace: Sequence[str], mode: str, data: Any) -> None:
        """Takes a part of the stream: its namespace, empty for the supervisor's own, its mode, and the data."""
        if mode == "values" and not namespace:
            self._state(data)
        elif mode == "custom" and isinstance(data, Mapping):
            self._event(data)
        elif mode == "messages" and not namespace:
            self._message(data)
        self._tell()

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
            self._steps[step_id] = {**_RUNNING, "calls": calls}
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


WITHHELD = "withheld: it is about tools that you may not see"
_STATUS = {"tool_approval": "needs_approval", "unknown_outcome": "outcome_unknown"}


def runs_of(visible: VisibleCatalog, history: Iterable[RunSnapshot]) -> list[Json]:
    """Returns the requests of one thread, the latest first.

    Args:
        visible: What the user may see: steps with hidden agents or tools keep only their place in the plan.
        history: The states of the thread, the latest first.
    """
    of_run: dict[str, list[RunSnapshot]] = {}
    for snapshot in history:
        if (run := snapshot.values.get("run")) and not is_echo(snapshot.values):
            of_run.setdefault(str(run), []).append(snapshot)
    return [run_of(visible, states[0], states[-1]) for states in of_run.values()]


def run_of(visible: VisibleCatalog, last: RunSnapshot, begin: RunSnapshot | None = None) -> Json:
    """Returns one request, from its last state and its first one, as JSON for the page.

    ``status`` is ``running``, ``waiting`` for a person, ``stopped`` before its end, or how it ended (``ending``).
    ``began`` is in seconds since 1970, 0 if it is not known; ``seconds`` go from the first state to the last, None if
    there is only one. ``answer`` is what is written of it so far. ``usage`` is None if no model was called.
    """
    first = begin or last
    state = last.values
    plan = state.get("plan") or {}
    report: Mapping[str, Any] = state.get("usage") or usage_report({**state})  # type: ignore[typeddict-item]
    questions: list[Json] = []
    for one in last.questions:
        questions += question_views(visible, one.id, one.value)
    steps = _steps(visible, state, questions, report)
    began = float(state.get("begun") or 0.0)
    return {
        "id": shown_line(str(state.get("run") or "")),
        "request": _text(state.get("request")),
        "status": _status(last, waits=bool(questions)),
        "at": first.at,
        "began": began,
        "seconds": round(time.time() - began, 3) if last.running and began else _between(first.at, last.at),
        # Without steps, the answer says it.
        "note": _text(plan.get("note")) if steps else "",
        **_written(last, withheld=any(step["error"] == WITHHELD for step in steps)),
        "questions": questions,
        "steps": steps,
        "usage": _usage(report),
        "roles": _roles(report.get("by_role") or {}),
    }


def _status(last: RunSnapshot, *, waits: bool) -> str:
    """Returns how a run goes on, or how it ended."""
    if last.running:
        return "running"
    if waits:
        return "waiting"
    if not run_answered(last):
        return "stopped"
    return ending(last.values.get("plan") or {}, last.values.get("results") or {})


def _steps(
    visible: VisibleCatalog, state: Mapping[str, Any], questions: Sequence[Json], report: Mapping[str, Any]
) -> list[Json]:
    """Returns the steps of the plan; one that a question is about has the status of that question."""
    plan, results, selections = (state.get(name) or {} for name in ("plan", "results", "selections"))
    by_step = report.get("by_step") or {}
    waiting = {one["step"]: _STATUS.get(one["kind"], "needs_input") for one in questions}
    steps: list[Json] = []
    for name, step in {step["id"]: step for step in plan.get("steps") or ()}.items():
        known = {**step, "status": waiting.get(name, "waiting")}
        spent = _usage(by_step.get(name) or {})
        steps.append(_step(visible, known, results.get(name) or {}, selections.get(name) or {}, spent))
    return steps


def _written(last: RunSnapshot, *, withheld: bool) -> Json:
    """Returns the answer, what ended the run, and the changes of the plan; or that they are withheld."""
    if withheld:
        return {"answer": WITHHELD, "trouble": WITHHELD if last.trouble else "", "revisions": []}
    answer = _answer(last.values.get("messages") or ())
    revisions = [_revision(one) for one in last.values.get("revisions") or ()]
    return {"answer": shown_text(answer or last.draft), "trouble": shown_text(last.trouble), "revisions": revisions}


def _roles(by_role: Mapping[str, Any]) -> list[Json]:
    """Returns what each role has spent, without those that called no model."""
    roles: list[Json] = []
    for role, part in by_role.items():
        spent = _usage(part)
        if spent:
            roles.append({"role": shown_line(role), **spent})
    return roles


def picture_of(visible: VisibleCatalog, history: Sequence[RunSnapshot], name: str) -> Json:
    """Returns a picture that a call of the thread has returned, in base64; reads the file.

    A client may write any path into a state, so only files of the store of results are read, and only pictures.
    ``UnknownNameError``: there is none of this name that the user may see.
    """
    for snapshot in history:
        selections = snapshot.values.get("selections") or {}
        for step_id, result in (snapshot.values.get("results") or {}).items():
            if not all(map(visible.may_see, _named(result, selections.get(step_id) or {}))):
                continue
            for file in [file for call in result.get("calls", ()) for file in call.get("files", ())]:
                content = visible.registry.pool.results.read(file) if Path(file).name == name else None
                if content and (media := picture_type(content)):
                    return {"media": media, "data": base64.b64encode(content).decode()}
    raise UnknownNameError(f"there is no picture {name!r} that you may see")


def run_answered(last: RunSnapshot) -> bool:
    """Returns whether a run has its answer."""
    return bool(_answer(last.values.get("messages") or ()))


def question_views(visible: VisibleCatalog, interrupt: str, value: Any) -> list[Json]:
    """Returns what waits for a person in an interrupt: a question for each call that it is about, otherwise one."""
    return [_question_view(visible, interrupt, place, one) for place, one in enumerate(each_call(value))]


def _question_view(visible: VisibleCatalog, interrupt: str, place: int, value: Any) -> Json:
    """Returns a question that waits for a person; without its content if it is about a tool that the user may not see.

    ``interrupt`` is the id by which it is answered, with the decisions on all its calls in the order of their places;
    ``kind`` is ``tool_approval``, ``unknown_outcome``, ``needs_input`` or ``question``, or that of another agent;
    ``why`` is the reason, ``problem`` what was wrong with the last answer, ``unchecked`` why the arguments could not be
    validated, ``shown`` is the text of the arguments that is approved, ``args`` all of them as JSON, ``fields`` are the
    missing values, ``name`` and ``decisions`` are those of LangChain's
    form, ``always`` says whether the tool can be approved for good, and ``hash`` binds an answer to exactly this call.
    """
    plain: Mapping[str, Any] = flat(value) or {"type": "", "description": str(value)}
    tool = str(plain.get("tool") or "")
    hidden = bool(tool) and not visible.may_see(tool)
    text = WITHHELD if hidden else _text(_question(plain) or plain.get("description") or plain)
    return {
        "id": f"{interrupt}-{place}" if place else interrupt,
        "interrupt": interrupt,
        "kind": str(plain.get("type") or ""),
        "step": shown_line(str(plain.get("step_id") or "")),
        "tool": visible.link(tool) if tool and not hidden else None,
        "text": text,
        **_content({} if hidden else plain),
    }


def _content(asked: Mapping[str, Any]) -> Json:
    """Returns what a question asks, and how it can be answered; all of it is empty for one that is withheld."""
    schema, args = asked.get("schema"), asked.get("args")
    choices: list[str] = []
    if isinstance(args, Mapping) and _question(asked):
        choices = [str(one) for one in args.get("choices") or ()]
    return {
        **{name: question_text.shown_text(str(asked.get(name) or "")) for name in ("why", "problem", "unchecked")},
        "shown": str(asked.get("shown") or ""),
        # Complete: what is edited is sent back as text, because JavaScript rounds numbers.
        "args": None if args is None else question_text.whole_value(args),
        "fields": _fields(schema.get("properties") or {}) if isinstance(schema, Mapping) else {},
        "choices": choices,
        "decisions": [str(one) for one in asked.get("decisions") or ()],
        "always": bool(asked.get("always")),
        **{name: str(asked.get(name) or "") for name in ("name", "hash")},
    }


def _fields(properties: Mapping[str, Any]) -> Json:
    """Returns the missing values by name: what each is about, and the choices as text if there are only some."""
    fields: Json = {}
    for name, schema in properties.items():
        spec = schema if isinstance(schema, Mapping) else {}
        choices = spec.get("enum")
        if not isinstance(choices, list):
            choices = [True, False] if spec.get("type") == "boolean" else []
        texts = [one if isinstance(one, str) else question_text.whole_value(one, indent=None) for one in choices]
        kinds = spec.get("type") or "value"
        kind = " or ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)
        fields[name] = {"about": _text(spec.get("description")), "type": kind, "choices": texts}
    return fields


def _question(asked: Mapping[str, Any]) -> str:
    """Returns the question to the user, if it is one about the request, or of another agent."""
    return str(asked["args"]["question"] if asked.get("type") == KIND else asked.get("question") or "")


def _step(
    visible: VisibleCatalog,
    step: Mapping[str, Any],
    result: Mapping[str, Any],
    picked: Mapping[str, Any],
    usage: Json | None,
) -> Json:
    """Returns a step of a plan with its result and its selected tools, which are empty before it has them.

    ``status`` is that of ``StepResult``, or ``waiting``, ``running``, ``needs_approval``.
    """
    status = result["status"] if result else step["status"]
    if not all(map(visible.may_see, _named(result, picked))):
        result, picked, usage = {"error": WITHHELD}, {}, None
    calls = [_call(visible, call) for call in result.get("calls", ())]
    tools = [tool for agent in picked.get("agents", ()) for tool in agent["tools"]]
    return {
        "id": shown_line(step["id"]),
        "text": _text(step.get("text")),
        "depends_on": _lines(step.get("depends_on")),
        "status": status,
        "usage": usage,
        "result": _text(result.get("result")),
        "note": _text(result.get("note")),
        "error": _text(result.get("error")),
        "seconds": sum(call["seconds"] for call in calls),
        "calls": calls,
        "picked": [
            {
                "tool": visible.link(tool["id"]),
                "why": shown_text(_why(tool, place=n)),
                "score": tool["score"],
            }
            for n, tool in enumerate(tools)
        ],
    }


def _why(tool: Mapping[str, Any], *, place: int) -> str:
    if len(tool["via"]) > 1:
        other, inferred = tool["via"][-2], tool.get("inferred") or ""
        why = f"{other} needs it" if tool.get("required") else f"{other} may need it"
        return f"{why}, inferred: {inferred}" if inferred else why
    return f"{fit(tool['score'])}, and best of all" if place == 0 else fit(tool["score"])


def _named(result: Mapping[str, Any], picked: Mapping[str, Any]) -> set[str]:
    calls, agents = result.get("calls", ()), picked.get("agents", ())
    named = {*result.get("agents", ()), *result.get("tools", ()), *(agent["id"] for agent in agents)}
    named |= {call["tool"] for call in calls} | {call.get("agent", "") for call in calls}
    return named | {node for agent in agents for tool in agent["tools"] for node in (tool["id"], *tool["via"])}


def _call(visible: VisibleCatalog, call: Mapping[str, Any]) -> Json:
    """One call of a worker; ``began`` in seconds since 1970, 0 if it is not known; ``pictures`` are names of files."""
    files: Sequence[str] = call.get("files", ())
    return {
        "tool": visible.link(call["tool"]),
        "args": question_text.shown_value(call["args"]),
        "answer": _text(call.get("output")),
        "error": _text(call.get("error")),
        "kind": call.get("kind", ""),
        "effect": call.get("effect", ""),
        "seconds": round(call.get("seconds", 0.0), 3),
        "began": call.get("began", 0.0),
        "running": call.get("running", False),
        "files": len(files),
        "pictures": [Path(file).name for file in files if str(guess_type(file)[0]).startswith("image/")],
    }


def _revision(one: Mapping[str, Any]) -> Json:
    changes = {name: _lines(one.get(name)) for name in ("added", "changed", "dropped")}
    known = {"wave": one.get("wave", 0), "reason": _text(one.get("reason")), "refused": one.get("refused", False)}
    return {**known, **changes}


def _text(value: Any) -> str:
    return shown_text(str(value or ""))


def _lines(values: Any) -> list[str]:
    return [shown_line(str(one)) for one in values or ()]


def _answer(messages: Sequence[Any]) -> str:
    """Returns the text of the last message if it is an answer."""
    if not messages or field_of(messages[-1], "type") != "ai":
        return ""
    content = field_of(messages[-1], "content")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _between(start: str, end: str) -> float | None:
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except ValueError:
        return None
    return round(seconds, 3) if seconds > 0 else None


def _usage(report: Mapping[str, Any]) -> Json | None:
    """Model calls and tokens; None if no model was called."""
    usage = Usage(**report)
    return usage.model_dump(exclude={"seconds"}) if usage.calls else None
