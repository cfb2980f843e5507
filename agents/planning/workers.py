"""Divides the steps that can be done next among workers: one, unless a context is the limit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from callsheet.agents.calls.plan import Plan, Step


def next_workers(
    plan: Plan,
    finished: Collection[str],
    *,
    cost: Callable[[Sequence[str]], int] = lambda tools: 0,
    most: int | None = None,
) -> list[tuple[Step, ...]]:
    """The workers of the next wave, each with its steps in the order of the plan.

    One worker does all steps that are not marked ``apart``, not done once per item, and do not wait for a step of
    another worker. A step that is apart, or done for an item, has a worker of its own. Where the tools that the steps
    name would cost more than ``most`` together, the steps are divided among several workers. A plan made without a
    model has a worker for each step.

    Args:
        plan: The plan, with mapped steps replaced by one for each item where the items are known.
        finished: Ids of the steps that have a result.
        cost: The cost of tools by their ids, in tokens of their schemas.
        most: The maximum cost of the tools of a worker; None for no limit.
    """
    ready = {step.id for step in plan.ready(finished)}
    alone = [step for step in plan.steps if step.id in ready and _is_alone(step, plan)]
    shared = [step for step in plan.steps if step.id not in finished and not _is_alone(step, plan)]
    workers: list[list[Step]] = []
    place: dict[str, int] = {}
    for step in shared:
        waits = [name for name in step.depends_on if name not in finished]
        if any(name not in place for name in waits):
            continue  # it waits for a worker of its own, or for what waits for one
        homes = {place[name] for name in waits}
        if len(homes) > 1:
            continue
        candidates = [*homes] or [*range(len(workers))]
        fitting = [number for number in candidates if _fits(step, workers[number], cost, most)]
        if fitting:
            place[step.id] = fitting[0]
            workers[fitting[0]].append(step)
        elif not homes:
            place[step.id] = len(workers)
            workers.append([step])
    return [*(tuple(steps) for steps in workers), *((step,) for step in alone)]


def _is_alone(step: Step, plan: Plan) -> bool:
    """Whether a step has a worker of its own."""
    return bool(step.apart or step.for_each or plan.mode == "no_model")


def _fits(step: Step, worker: Sequence[Step], cost: Callable[[Sequence[str]], int], most: int | None) -> bool:
    """Whether a worker can take a step with the tools that it names."""
    if most is None:
        return True
    tools = dict.fromkeys(tool for one in (*worker, step) for tool in one.tools)
    return cost([*tools]) <= most
