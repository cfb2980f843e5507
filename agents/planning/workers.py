"""Divides the steps that can be done next among workers: one worker, unless their tools exceed its context."""

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
    """Divides the next steps among workers; returns each worker's steps in the order of the plan.

    One worker does all steps that are not marked ``apart``, are not done once per item, and do not wait for a step of
    another worker. A step that is marked ``apart``, or is done for an item, has its own worker. If the tools that the
    steps name would cost more than ``most`` together, the steps are divided among several workers. In a plan made
    without a model, each step has its own worker.

    Args:
        plan: The plan; mapped steps are replaced by one step per item if the items are known.
        finished: Ids of the steps that have a result.
        cost: The cost of tools by their ids, in tokens of their schemas.
        most: The maximum cost of the tools of a worker; None for no limit.
    """
    workers: list[list[Step]] = []
    place: dict[str, int] = {}  # step id -> number of its worker
    for step in plan.steps:
        if step.id in finished or _is_alone(step, plan):
            continue
        waits = [name for name in step.depends_on if name not in finished]
        if not all(name in place for name in waits):
            continue  # it waits for a worker of its own, or for what waits for one
        number = _number_of_worker(step, {place[name] for name in waits}, workers, cost, most)
        if number is None:
            continue
        if number == len(workers):
            workers.append([])
        workers[number].append(step)
        place[step.id] = number
    ready = {step.id for step in plan.ready(finished)}
    alone = [(step,) for step in plan.steps if step.id in ready and _is_alone(step, plan)]
    return [*map(tuple, workers), *alone]


def _number_of_worker(
    step: Step,
    needed: Collection[int],
    workers: Sequence[Sequence[Step]],
    cost: Callable[[Sequence[str]], int],
    most: int | None,
) -> int | None:
    """Returns the number of the worker that takes a step, which may be a new one; None if the step has to wait.

    ``needed`` are the numbers of the workers that do the steps on which it depends.
    """
    if len(needed) > 1:
        return None
    for number in needed or range(len(workers)):
        if _fits(step, workers[number], cost, most):
            return number
    return None if needed else len(workers)


def _is_alone(step: Step, plan: Plan) -> bool:
    """Returns whether a step has a worker of its own."""
    return bool(step.apart or step.for_each or plan.mode == "no_model")


def _fits(step: Step, worker: Sequence[Step], cost: Callable[[Sequence[str]], int], most: int | None) -> bool:
    """Returns whether a worker can take a step with the tools that it names."""
    if most is None:
        return True
    tools = dict.fromkeys(tool for one in (*worker, step) for tool in one.tools)
    return cost([*tools]) <= most
