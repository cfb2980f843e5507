"""Divides the result of a worker over its steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from callsheet.agents.calls.plan import GAVE, Call, Step, StepEnd, StepResult, resolved
from callsheet.agents.calls.token_usage import Usage


def step_results(
    whole: StepResult, steps: Sequence[Step], given: Mapping[str, Sequence[str]], agents: Mapping[str, Sequence[str]]
) -> list[StepResult]:
    """The result of every step of a worker, in its order.

    Each has the words of the worker, and the status that ``finish`` gave it, else that of the worker. A call stands
    under the first unfinished step that names its tool; the cost, and tools that the worker asked for, under the first
    step.

    Args:
        whole: The result of the worker.
        steps: Its steps, the first one first.
        given: Step id -> ids of the tools that were given for it.
        agents: Step id -> ids of the agents that were selected for it.
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
    results: list[StepResult] = []
    for step in steps:
        end = whole.ends.get(step.id, StepEnd(status=whole.status))
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


def _ended(whole: StepResult, end: StepEnd) -> dict[str, object]:
    """What differs from the worker's result if a step ended this way."""
    said = whole.result or whole.error
    gave = end.status in GAVE
    # A reference is resolved here: the call that it names may stand under another step.
    data = resolved(whole.data if end.data is None else end.data, (), whole.calls)
    return {
        "status": end.status,
        "result": said if gave else "",
        "error": "" if gave else said,
        "data": data,
        "missing": whole.missing if end.status == "needs_input" else {},
    }


def calls_of_steps(
    calls: Sequence[Call], steps: Sequence[Step], given: Mapping[str, Collection[str]]
) -> dict[str, list[Call]]:
    """The calls of a worker by step: under the first step, from the one that it is at, that names or has the tool."""
    found: dict[str, list[Call]] = defaultdict(list)
    at = 0
    for call in calls:
        places = [place for place, step in enumerate(steps) if call.tool in step.tools]
        places = places or [place for place, step in enumerate(steps) if call.tool in given.get(step.id, ())]
        later = [place for place in places if place >= at]
        if later:
            at = later[0]
        found[steps[later[0] if later else places[-1] if places else at].id].append(call)
    return found
