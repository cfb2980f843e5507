"""The events of a run, which the command line prints and the page shows.

A run writes them as it goes (``docs/how-to/langgraph.md`` lists them). A stored state is described by the same events,
so the page shows a run that has ended in the same way as one that goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from callsheet.orchestrator.step_selection import StepSelection

RunEvent = Mapping[str, Any]
"""An event: its name as ``event``, and its fields."""
MODES = ("custom", "messages")
"""The stream modes of LangGraph that carry events."""


def event_of(namespace: Sequence[str], mode: str, data: Any) -> RunEvent | None:
    """Converts a part of a stream to an event; None if it is not one.

    A token of the answer is an event too: ``draft``, with ``text``.

    Args:
        namespace: Where the part comes from; empty for the supervisor's own.
        mode: One of ``MODES``.
        data: What LangGraph streams in this mode.
    """
    if mode == "custom":
        return data if isinstance(data, Mapping) else None
    if mode != "messages" or namespace:
        return None
    message, about = data
    text = field_of(message, "content")
    if about.get("langgraph_node") != "answer" or field_of(message, "type") != "AIMessageChunk":
        return None
    return {"event": "draft", "text": text} if text and isinstance(text, str) else None


def field_of(message: Any, name: str) -> Any:
    """Returns a field of a message, which is an object in this process and a dict from a server."""
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def values_of(snapshot: StateSnapshot) -> dict[str, Any]:
    """Returns the values of a state, including the results of steps that have ended while others go on."""
    # A server gives a list for a thread without any state.
    values = dict(snapshot.values) if isinstance(snapshot.values, Mapping) else {}
    for task in snapshot.tasks:
        written = task.result if isinstance(task.result, Mapping) else {}
        for name in ("selections", "results"):
            if isinstance(written.get(name), Mapping):
                values[name] = {**(values.get(name) or {}), **written[name]}
    return values


def last_states(history: Sequence[StateSnapshot]) -> list[StateSnapshot]:
    """Returns the last state of each request of a thread.

    Args:
        history: The states of the thread, the latest first.
    """
    by_run: dict[str, StateSnapshot] = {}
    for snapshot in history:
        values = values_of(snapshot)
        if values.get("run") and not _is_followed(values):
            by_run.setdefault(str(values["run"]), snapshot)
    return list(by_run.values())


def _is_followed(values: Mapping[str, Any]) -> bool:
    """Returns whether a state is that of an answered request to which the next one was just added."""
    messages: Sequence[Any] = values.get("messages", [])
    return bool(values.get("ended") and messages) and field_of(messages[-1], "type") == "human"


def event_status(snapshot: StateSnapshot) -> str:
    """Returns how the request of a state ended, as ``ending`` does; else ``waiting`` for a person, or ``stopped``."""
    if snapshot.interrupts:
        return "waiting"
    return str(values_of(snapshot).get("ended") or "stopped")


def state_events(snapshot: StateSnapshot) -> list[RunEvent]:
    """Returns the events that describe the request in a state; empty for a thread without a request.

    Besides the events that a run writes, there are ``question`` (``id`` of an interrupt, ``value``), ``answer``
    (``text``) and, at the end, ``end`` (``status`` of ``event_status``; ``seconds`` from the start to this state, or
    None).
    """
    # The imports take seconds, and printing needs none of them.
    from callsheet.orchestrator.plans import usage_report
    from callsheet.orchestrator.step_selection import StepSelection

    values = values_of(snapshot)
    if not values.get("run"):
        return []
    events: list[RunEvent] = [request_event(values)]
    plan = values.get("plan")
    if plan:
        events.append({"event": "plan", **plan})
    for step_id, selection in (values.get("selections") or {}).items():
        why = dict(StepSelection.from_dict(selection).why)
        events.append({"event": "picked", "step_id": step_id, "selection": selection, "why": why})
    for step_id, result in (values.get("results") or {}).items():
        events.append({"event": "step", "step_id": step_id, "result": result})
    events += [{"event": "revision", **one} for one in values.get("revisions") or ()]
    usage: Mapping[str, Any] = values.get("usage") or usage_report(values)  # type: ignore[arg-type]
    events.append({"event": "usage", **usage})
    events += [{"event": "question", "id": one.id, "value": one.value} for one in snapshot.interrupts]
    if values.get("ended"):
        events.append({"event": "answer", "text": _answer(values.get("messages") or ())})
    seconds = _seconds(values.get("begun"), snapshot.created_at)
    events.append({"event": "end", "status": event_status(snapshot), "seconds": seconds})
    return events


def request_event(values: Mapping[str, Any]) -> RunEvent:
    """Returns the event that begins a request: its run, its text, and its start in seconds since 1970."""
    return {"event": "request", **{name: values.get(name) for name in ("run", "request", "begun")}}


def _answer(messages: Sequence[Any]) -> str:
    content = field_of(messages[-1], "content") if messages else ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _seconds(begun: float | None, at: str | None) -> float | None:
    if not begun or not at:
        return None
    return round(max(0.0, datetime.fromisoformat(at).timestamp() - begun), 3)


def pick_notes(picked: StepSelection, *, explain: bool = False) -> list[tuple[str, str]]:
    """Returns notes about a selection for a person, each with its kind and its text.

    Kinds are ``warning`` (agents that are left out or did not answer, a decision model that failed, nothing that fits),
    ``skill``, and, with ``explain``, ``decision``.
    """
    notes = [("warning", f"without {agent}: {why}") for agent, why in picked.left_out.items()]
    for agent, since in picked.down.items():
        notes.append(("warning", f"{agent} did not answer when last asked; its tools are as of {since}"))
    decision = picked.selection.decision
    if decision and (decision.error or explain):
        notes.append(("warning" if decision.error else "decision", f"judged: {decision.summary}"))
    if picked.selection.verdict == "nothing_fits" and not picked.error:
        notes.append(("warning", "nothing in the catalog fits"))
    return [*notes, *(("skill", f"skill {skill.id}, score {skill.score:.2f}") for skill in picked.selection.skills)]


def progress_text(event: RunEvent) -> str:
    """Returns the progress of a call or of a remote agent as text: "3 of 10: reading"."""
    far = ""
    if event.get("progress") is not None:
        far = f"{event['progress']:g}"
        if event.get("total") is not None:
            far += f" of {event['total']:g}"
    return ": ".join(filter(None, (far, event.get("text", ""))))
