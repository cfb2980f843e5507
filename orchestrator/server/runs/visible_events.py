"""Converts the events of a run to JSON for the page, without what the viewer may not see."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from langgraph.errors import InvalidUpdateError
from langgraph.types import StateSnapshot

from callsheet.agents import Call, StepResult, Usage
from callsheet.agents.calls import question_text
from callsheet.agents.work.media import picture_type
from callsheet.graphs import UnknownNameError
from callsheet.orchestrator.run_events import RunEvent, pick_notes, progress_text, values_of
from callsheet.orchestrator.server.runs.question_views import WITHHELD, question_views
from callsheet.orchestrator.server.visible_catalog import Json, VisibleCatalog, page_text, shown_line
from callsheet.orchestrator.state import read_result
from callsheet.orchestrator.step_selection import StepSelection

_UNREADABLE = "withheld: its result cannot be read, so it is not known what it names"
_OF_CALLS = ("tool_started", "progress", "tool_finished")


class VisibleEvents:
    """Converts the events of one thread for one viewer.

    A step that names an agent or a tool that the viewer may not see is withheld. Then the answer, the changes of the
    plan, and the error that ended the run are withheld too, because any of them may reveal what the step did.
    """

    def __init__(self, visible: VisibleCatalog) -> None:
        self._visible = visible
        self._withheld: set[str] = set()

    def of(self, event: RunEvent) -> list[Json]:
        """Returns an event in the form for the page; several for a question about several calls, none if it is unknown.

        It is slow for an event with a long text, so not for an event loop.
        """
        kind = str(event.get("event"))
        if kind == "request":
            self._withheld = set()
        if kind == "question":
            views = question_views(self._visible, event["id"], event["value"])
            return [{"event": kind, **view} for view in views]
        draw = _DRAWN.get(kind)
        if draw is None:
            return []
        if "step_id" in event:
            return self._of_step(kind, event, draw)
        if self._withheld and kind in _TELLING:
            return _TELLING[kind]
        if kind == "usage":
            by_step = {step: cost for step, cost in event.get("by_step", {}).items() if step not in self._withheld}
            event = {**event, "by_step": by_step}
        return [{"event": kind, **draw(self._visible, event)}]

    def _of_step(self, kind: str, event: RunEvent, draw: Callable[[VisibleCatalog, RunEvent], Json]) -> list[Json]:
        step_id = str(event["step_id"])
        result = _result(event)
        if not _may_see(self._visible, event, result):
            if kind in _OF_CALLS and not event.get("agent"):
                # What a worker does itself, such as reading a result: the result of the step decides.
                return []
            self._withheld.add(step_id)
        named = {"event": kind, "step_id": shown_line(step_id)}
        if step_id not in self._withheld:
            return [{**named, **draw(self._visible, event)}]
        if result is None:
            return [{**named, "event": "withheld", "status": "failed", "error": _UNREADABLE}]
        status = result.status if kind == "step" else "running"
        return [{**named, "event": "withheld", "status": status, "error": WITHHELD}]


_TELLING: Mapping[str, list[Json]] = {
    "answer": [{"event": "answer", "text": WITHHELD}],
    "trouble": [{"event": "trouble", "text": WITHHELD}],
    "draft": [],
    "revision": [],
}
"""Events that may tell what a withheld step did, and what the page gets in their place."""


def _may_see(visible: VisibleCatalog, event: RunEvent, result: StepResult | None) -> bool:
    """Returns whether a viewer may see all that an event of a step names; not if its ``result`` cannot be read."""
    return result is not None and all(map(visible.may_see, _named(event, result)))


def _named(event: RunEvent, result: StepResult) -> set[str]:
    """Returns all agents and tools that an event of a step names; ``result`` is the one in it."""
    named = {*result.agents, *result.tools, *event.get("tools", ())}
    for agent in StepSelection.from_dict(event.get("selection")).selection.agents:
        named.add(agent.id)
        for tool in agent.tools:
            named |= {tool.id, *tool.via}
    for call in result.calls:
        named |= {call.tool, call.agent}
    return named | {event[name] for name in ("agent", "tool") if event.get(name)}


def _result(event: RunEvent) -> StepResult | None:
    """Returns the result in an event of a step, an empty one if there is none yet; None if it cannot be read."""
    result = event.get("result")
    if not result:
        return StepResult(id="", text="")
    try:
        return read_result(result)
    except InvalidUpdateError:  # a client may have written anything
        return None


def _request(visible: VisibleCatalog, event: RunEvent) -> Json:
    """``began`` is in seconds since 1970, and ``seconds`` the time since then; None if it has not begun."""
    began = event.get("begun")
    return {
        "id": shown_line(str(event.get("run") or "")),
        "text": _text(event.get("request")),
        "began": began,
        "seconds": round(time.time() - began, 3) if began else None,
    }


def _plan(visible: VisibleCatalog, event: RunEvent) -> Json:
    # Without steps, the answer says it.
    return {"steps": _steps(event), "note": _text(event.get("note")) if event.get("steps") else ""}


def _steps(event: RunEvent) -> list[Json]:
    steps: dict[str, Json] = {}
    for step in event.get("steps") or ():
        name = shown_line(step["id"])
        steps[name] = {"id": name, "text": _text(step.get("text")), "depends_on": _lines(step.get("depends_on"))}
    return [*steps.values()]


def _revision(visible: VisibleCatalog, event: RunEvent) -> Json:
    texts = event.get("texts") or {}
    changes: Json = {}
    for name in ("added", "changed", "dropped"):
        changes[name] = [{"id": shown_line(step), "text": _text(texts.get(step))} for step in event.get(name) or ()]
    known = {"wave": event.get("wave", 0), "reason": _text(event.get("reason")), "refused": event.get("refused", False)}
    return {**known, **changes, "steps": _steps(event)}


def _picked(visible: VisibleCatalog, event: RunEvent) -> Json:
    picked = StepSelection.from_dict(event["selection"])
    skills = tuple(skill for skill in picked.selection.skills if visible.may_see(skill.id))
    known = replace(
        picked,
        selection=replace(picked.selection, skills=skills),
        left_out=_of_seen_agents(picked.left_out, visible),
        down=_of_seen_agents(picked.down, visible),
    )
    return {
        "tools": [{"tool": visible.link(tool), "why": _text(picked.why.get(tool))} for tool in picked.tool_ids],
        "notes": [{"kind": kind, "text": _text(text)} for kind, text in pick_notes(known)],
        "error": _text(picked.error),
    }


def _of_seen_agents(told: Mapping[str, str], visible: VisibleCatalog) -> dict[str, str]:
    return {agent: text for agent, text in told.items() if visible.may_see(agent)}


def _added(visible: VisibleCatalog, event: RunEvent) -> Json:
    return {"what": _text(event["what"]), "tools": [visible.link(tool) for tool in event["tools"]]}


def _started(visible: VisibleCatalog, event: RunEvent) -> Json:
    call = Call(agent=event.get("agent", ""), tool=event["tool"], args=event["args"], began=event.get("began", 0.0))
    return {"call": {**_call(visible, call), "id": event["call_id"], "running": True}}


def _progress(visible: VisibleCatalog, event: RunEvent) -> Json:
    return {"call_id": event.get("call_id"), "text": shown_line(progress_text(event))}


def _finished(visible: VisibleCatalog, event: RunEvent) -> Json:
    failed = event.get("status") == "error"
    text = _text(event.get("output"))
    return {
        "call_id": event["call_id"],
        "answer": "" if failed else text,
        "error": text if failed else "",
        "kind": event.get("kind", ""),
        "effect": event.get("effect", ""),
        "seconds": round(event.get("seconds", 0.0), 3),
    }


def _step(visible: VisibleCatalog, event: RunEvent) -> Json:
    result = read_result(event["result"])
    return {
        "status": result.status,
        "result": _text(result.result),
        "note": _text(result.note),
        "error": _text(result.error),
        "calls": [_call(visible, call) for call in result.calls],
    }


def _call(visible: VisibleCatalog, call: Call) -> Json:
    """One call of a worker; ``began`` in seconds since 1970, 0 if it is not known; ``pictures`` are names of files."""
    return {
        **call.model_dump(include={"kind", "effect", "seconds", "began"}),
        "tool": visible.link(call.tool),
        "args": question_text.shown_value(call.args),
        "answer": _text(call.output),
        "error": _text(call.error),
        "files": len(call.files),
        "pictures": [Path(file).name for file in call.files if str(guess_type(file)[0]).startswith("image/")],
    }


def _cost(visible: VisibleCatalog, event: RunEvent) -> Json:
    """What the models have cost so far, in total, by role and by step; without what called no model."""
    by_role = {role: _usage(part) for role, part in (event.get("by_role") or {}).items()}
    by_step = {step: _usage(part) for step, part in (event.get("by_step") or {}).items()}
    return {
        "total": _usage(event),
        "roles": [{"role": shown_line(role), **spent} for role, spent in by_role.items() if spent],
        "steps": {shown_line(step): spent for step, spent in by_step.items() if spent},
    }


def _usage(report: Mapping[str, Any]) -> Json | None:
    """Model calls and tokens; None if no model was called."""
    usage = Usage(**{name: value for name, value in report.items() if name in Usage.model_fields})
    return usage.model_dump(exclude={"seconds"}) if usage.calls else None


def _says(visible: VisibleCatalog, event: RunEvent) -> Json:
    return {"text": _text(event["text"])}


def _end(visible: VisibleCatalog, event: RunEvent) -> Json:
    return {"status": event["status"], "seconds": event["seconds"]}


_DRAWN: Mapping[str, Callable[[VisibleCatalog, RunEvent], Json]] = {
    "request": _request,
    "running": lambda visible, event: {},
    "plan": _plan,
    "revision": _revision,
    "picked": _picked,
    "added": _added,
    "tool_started": _started,
    "progress": _progress,
    "tool_finished": _finished,
    "step": _step,
    "usage": _cost,
    "draft": _says,
    "answer": _says,
    "trouble": _says,
    "end": _end,
}
"""The events that the page draws, by name; ``question`` is the one that may be several."""


def picture_of(visible: VisibleCatalog, history: Sequence[StateSnapshot], name: str) -> Json:
    """Returns a picture that a call of the thread has returned, in base64; reads the file.

    A client may write any path into a state, so only pictures in the store of results are read. Raises an
    ``UnknownNameError`` if the user may see no such picture.
    """
    for snapshot in history:
        values = values_of(snapshot)
        selections = values.get("selections") or {}
        for step_id, stored in (values.get("results") or {}).items():
            event = {"result": stored, "selection": selections.get(step_id)}
            result = _result(event)
            if result is None or not _may_see(visible, event, result):
                continue
            for file in [file for call in result.calls for file in call.files]:
                content = visible.registry.pool.results.read(file) if Path(file).name == name else None
                if content and (media := picture_type(content)):
                    return {"media": media, "data": base64.b64encode(content).decode()}
    raise UnknownNameError(f"there is no picture {name!r} that you may see")


def _text(value: Any) -> str:
    return page_text(str(value or ""))


def _lines(values: Any) -> list[str]:
    return [shown_line(str(one)) for one in values or ()]
