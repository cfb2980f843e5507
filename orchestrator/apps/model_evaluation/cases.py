"""What is attempted: labelled queries, and tasks with end states."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from callsheet.graphs import SettingsError
from callsheet.orchestrator.apps.model_evaluation.arms import Arm
from callsheet.orchestrator.apps.model_evaluation.attempts import Attempt
from callsheet.orchestrator.apps.model_evaluation.grading import Grade, graded, graded_task
from callsheet.orchestrator.apps.model_evaluation.tasks import EndState, Task, TaskData
from callsheet.retrievers import LabelledQuery


@dataclass(frozen=True, slots=True)
class Case:
    """A request with what is wanted of an attempt at it.

    Attributes:
        id: Unique in its file.
        request: What the model is asked.
        wanted: What is wanted, in words.
        key: What decides an attempt, as JSON values. Labels are not in it: they may change without a new attempt.
        attempt: Makes an attempt of an arm.
        grade: Grades an attempt.
    """

    id: str
    request: str
    wanted: str
    key: Any
    attempt: Callable[[Arm], Awaitable[Attempt]]
    grade: Callable[[Attempt], Grade]


def query_case(query: LabelledQuery) -> Case:
    """A labelled query as a case."""
    wanted = "; ".join(" or ".join(group) for group in query.tools)
    grade = partial(graded, query)
    return Case(query.id, query.query, wanted, query.query, lambda arm: arm.attempt(query.query), grade)


def task_case(task: Task, data: TaskData) -> Case:
    """A task as a case; only one attempt at a time may use its data."""

    async def attempt(arm: Arm) -> Attempt:
        """An attempt over a fresh copy of the data, with the checks that do not hold after it."""
        await asyncio.to_thread(data.renew, task.setup)
        if not await asyncio.to_thread(task.unmet, EndState(data.place)):
            raise SettingsError(f"task {task.id}: its checks hold before anything is done: correct them")
        made = await arm.attempt(data.asked(task))
        end = EndState(data.place, made.answer)
        return made.model_copy(update={"unmet": await asyncio.to_thread(task.unmet, end)})

    wanted = "; ".join(map(str, task.checks))
    return Case(task.id, task.request, wanted, task.model_dump(mode="json"), attempt, graded_task)
