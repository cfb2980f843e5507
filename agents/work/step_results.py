"""Divides the result of a worker among its steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from callsheet.agents.calls.outcome import Call
from callsheet.agents.calls.plan import GAVE, Status, Step, StepEnd, StepResult, resolve_references
from callsheet.agents.calls.token_usage import Usage


def step_results(
    whole: StepResult, steps: Sequence[Step], given: Mapping[str, Sequence[str]], agents: Mapping[str, Sequence[str]]
) -> list[StepResult]:
    """Divides the result of a worker among its steps; returns one result for each step, in their order.

    Each has the words of the worker, and the status that ``finish`` gave the step, otherwise that of the worker. If the
    worker did a part and named the steps that were not done, the other steps are done. A call belongs to the first
    unfinished step that names its tool. The cost, and the tools that the worker asked for, belong to the first step.

    Args:
        whole: The result of the worker.
        steps: Its steps, the first one first.
        given: Step id -> ids of the tools that were selected for the step.
        agents: Step id -> ids of the agents that were selected for the step.
    """
    if len(steps) == 1:
        step = steps[0]
        end = whole.ends.get(step.id)
        one = whole if end is None else whole.model_copy(update=_ended(whole, end))
        alone: dict[str, object] = {"id": step.id, "text": step.text, "depends_on": step.depends_on, "ends": {}}
        return [one.model_copy(update={**alone, "worker": step.id, "agents": tuple(agents.get(step.id, ()))})]
    lead = steps[0].id
    calls = calls_of_steps(whole.calls, steps, given)
    shared = {tool for tools in given.values() for tool in tools}
    other = StepEnd(status=_status_of_others(whole))
    results: list[StepResult] = []
    for step in steps:
        end = whole.ends.get(step.id, other)
        tools = [*given.get(step.id, ())]
        if step.id == lead:
            tools += [tool for tool in whole.tools if tool not in shared]
        fields: dict[str, object] = {
            "id": step.id,
            "text": step.text,
            "depends_on": step.depends_on,
            "worker": lead,
            "agents": tuple(agents.get(step.id, ())),
            "tools": tuple(tools),
            "calls": tuple(calls[step.id]),
            "usage": whole.usage if step.id == lead else Usage(),
            "ends": {},
        }
        results.append(whole.model_copy(update=_ended(whole, end) | fields))
    return results


def _status_of_others(whole: StepResult) -> Status:
    """Returns the status of the steps that ``finish`` did not name."""
    is_told = any(end.status != "done" for end in whole.ends.values())
    return "done" if whole.status == "partly" and is_told else whole.status


def _ended(whole: StepResult, end: StepEnd) -> dict[str, object]:
    """Returns the fields that differ from the worker's result if a step ended this way."""
    words = whole.result or whole.error
    is_result = end.status in GAVE
    # A reference is resolved here: the call that it names may stand under another step.
    data = resolve_references(whole.data if end.data is None else end.data, (), whole.calls)
    return {
        "status": end.status,
        "result": words if is_result else "",
        "error": "" if is_result else words,
        "data": data,
        "missing": whole.missing if end.status == "needs_input" else {},
    }


def calls_of_steps(
    calls: Sequence[Call], steps: Sequence[Step], given: Mapping[str, Collection[str]]
) -> dict[str, list[Call]]:
    """Divides the calls of a worker among its steps; returns them by step id.

    A call belongs to the first step that names its tool, otherwise to a step for which the tool was selected: to the
    first such step from that of the previous call on, or else to the last such step. If there is no such step, it
    belongs to the step of the previous call.
    """
    divided: dict[str, list[Call]] = defaultdict(list)
    current = 0
    for call in calls:
        places = [place for place, step in enumerate(steps) if call.tool in step.tools]
        if not places:
            places = [place for place, step in enumerate(steps) if call.tool in given.get(step.id, ())]
        later = [place for place in places if place >= current]
        if later:
            current = later[0]
            place = current
        else:
            place = places[-1] if places else current
        divided[steps[place].id].append(call)
    return divided
