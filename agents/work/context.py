"""What planner, worker and reviser know besides their task: results in a form for models, and the surroundings."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from callsheet.agents.calls.plan import Call, Plan, Step, StepResult, source_of
from callsheet.agents.calls.tool_result import Kind
from callsheet.agents.registry.binding import READ_RESULT
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.servers.in_process import InProcess
from callsheet.agents.work.value_references import ResultValueError, shape, value_of
from callsheet.graphs import CallsheetError, ServerConfig

_AGENTS = 50
"""Maximum number of agents whose folders are looked for."""
_BUDGET, _LONGEST, _LEAST = 12_000, 1_500, 200
"""Characters of all results together, and of one text of a result: at most, and at least."""
_PRESENT = "A person is present: calls may be put before them, and they can be asked what only they know."
_ABSENT = "Nobody is present: a question stays unanswered, and ends the work that needs its answer."


def surroundings(registry: ToolRegistry, agents: Collection[str], begun: float, *, present: bool) -> str:
    """The date, who is present, and the folders of agents, as text for a model.

    Args:
        registry: Knows how the agents are reached.
        agents: Ids of the agents that the user may see, those in play first.
        begun: Start of the run, in seconds since 1970.
        present: Whether a person can answer questions.
    """
    now = datetime.fromtimestamp(begun).astimezone()
    zone = os.environ.get("TZ") or now.tzname() or ""
    places = [(agent, folders_of(registry, agent)) for agent in list(dict.fromkeys(agents))[:_AGENTS]]
    known, troubles = registry.catalog.by_id, get_args(Kind)
    gone = {p.agent: p.message for p in registry.loaded.problems if p.kind in troubles and p.agent not in known}
    missing = "; ".join(f"{agent} ({why})" for agent, why in gone.items()) if registry.policy is None else ""
    told = "\n".join(f"- {agent}: {', '.join(found)}" for agent, found in places if found)
    told += "\nA path of one agent may be out of reach for another." if told.count("\n") else ""
    return "\n".join(
        (
            f"Now: {now:%A, %Y-%m-%d %H:%M}, UTC{now:%z} ({zone}).",
            _PRESENT if present else _ABSENT,
            *([f"Agents that are not available in this run: {missing}."] if missing else []),
            *([f"Folders of the agents:\n{told}"] if told else []),
        )
    )


def folders_of(registry: ToolRegistry, agent: str) -> tuple[str, ...]:
    """The folders of an agent: its roots, its working folder, and those in its server's arguments and variables.

    For an agent of this process, the ``root_dir`` of its tools.
    """
    connection = registry.loaded.connections.get(agent)
    if not isinstance(connection, ServerConfig):
        tools = connection.tools.values() if isinstance(connection, InProcess) else ()
        found = (getattr(tool, "root_dir", None) for tool in tools)
        return tuple(dict.fromkeys(str(Path(place).resolve()) for place in found if isinstance(place, str) and place))
    try:
        server = connection.expanded(os.environ)
    except CallsheetError:
        return ()  # its calls say which variable is missing
    named = (one for one in (*server.args, *server.env.values()) if Path(one).is_absolute() and Path(one).is_dir())
    return tuple(dict.fromkeys((*server.callsheet.roots, *filter(None, [server.cwd]), *named)))


def place_of(step: Step, plan: Plan, results: Mapping[str, StepResult]) -> str:
    """A step's place in its plan, as text for its worker; empty for a plan of one step.

    Of the items of one list, only the step's own is named. A step whose result other steps map over is told so.
    """
    if len(plan.steps) < 2:
        return ""
    items = [one.id for one in plan.steps if one.item and one.for_each == step.for_each] if step.item else []
    marks = {name: f" [{result.status}]" for name, result in results.items()} | {step.id: " <- your step"}
    lines = ["The plan:", plan_lines((s for s in plan.steps if s.id == step.id or s.id not in items), marks)]
    if items:
        lines.append(f"Yours is item {1 + items.index(step.id)} of {len(items)} of the result of {step.for_each}.")
    mapped = [one for one in plan.steps if not one.item and source_of(one.for_each, [step.id]) == step.id]
    if any(one.for_each for one in mapped):
        lines.append(f"Your result must be the list for step {mapped[0].id}: call finish with the items as data.")
    return "\n".join(lines)


def plan_lines(steps: Iterable[Step], marks: Mapping[str, str] | None = None) -> str:
    """Steps in a line each: what a step waits for, whether it is done once per item, and a mark by its id."""
    return "\n".join(
        f"{one.id}. {one.text[:_LEAST]}"
        + (f" (after {', '.join(one.depends_on)})" if one.depends_on else "")
        + (f" (once for each item of {one.for_each})" if one.for_each and not one.item else "")
        + (marks or {}).get(one.id, "")
        for one in steps
    )


def reports(results: Sequence[StepResult]) -> str:
    """Results for a model, within a budget of characters."""
    most = max(_LEAST, min(_LONGEST, _BUDGET // max(1, 2 * len(results))))
    return "\n\n".join(reported(result, most=most) for result in results)


def reported(result: StepResult, *, most: int = _LONGEST) -> str:
    """One result for a model: what the worker said, its data, and its calls, each with shape and beginning."""
    said = result.result if result.status == "done" else f"({result.status}) {result.error}"
    lines = [f"<step id={result.id!r}>", result.text, "<result>", beginning(said, most), "</result>"]
    lines += [f"The data of {result.id!r}: {_data(result, most)}"] if _has_data(result) else []
    calls = [call for call in result.calls if call.id]
    if calls:
        each = max(_LEAST // 2, min(most // 3, most // len(calls)))
        lines += ["Calls:", *(_call(call, result.id, each) for call in calls)]
    return "\n".join((*lines, "</step>"))


def beginning(text: str, most: int = _LONGEST) -> str:
    """The text, or its beginning with its length."""
    if len(text) <= most:
        return text
    return f"{text[:most]}…\n[{len(text):,} characters in all; read more with {READ_RESULT}]"


def written(value: Any) -> str:
    """A value as text: a text itself, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _has_data(result: StepResult) -> bool:
    """Whether there is more than the text: data that the worker gave, or a text that is JSON."""
    return result.data is not None or (result.status == "done" and not isinstance(value_of(result), str))


def _data(result: StepResult, most: int) -> str:
    try:
        value = value_of(result)
    except ResultValueError as error:
        return str(error)
    inside = written(value)
    return shape(value) if inside in result.result else f"{shape(value)}: {beginning(inside, most)}"


def _call(call: Call, step: str, most: int) -> str:
    """A call in one line: id, tool, arguments, and the beginning of what came of it."""
    args = " ".join(written(dict(call.args)).split())
    came = f"failed: {call.error}" if call.error else f"{len(call.output):,} characters: {call.output}"
    line = " ".join(came.split())
    cut = (text if len(text) <= most else f"{text[:most]}…" for text in (args, line))
    return f"- {step}/{call.id} {call.tool} {' -> '.join(cut)}"
