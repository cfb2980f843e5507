"""Makes cases of labelled queries, runs the arms on them, and compares them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from statistics import fmean, median
from typing import Any

from callsheet.agents import Usage
from callsheet.agents.models.prices import Price
from callsheet.graphs import SettingsError
from callsheet.orchestrator.apps.model_evaluation.arms import Arm
from callsheet.orchestrator.apps.model_evaluation.attempts import Attempt, AttemptLog
from callsheet.orchestrator.apps.model_evaluation.grading import Cause, Grade, graded, graded_task
from callsheet.orchestrator.apps.model_evaluation.tasks import EndState, Task, TaskData
from callsheet.retrievers import LabelledQuery
from callsheet.retrievers.evaluation.evaluator import bootstrap_interval
from callsheet.retrievers.index.node_texts import Progress


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


_GIVE_UP_AFTER = 3


@dataclass(frozen=True, slots=True)
class Graded:
    """An attempt of one arm at one case, with its grade."""

    case: Case
    attempt: Attempt
    grade: Grade


@dataclass(frozen=True, slots=True)
class ArmResult:
    """The results of one arm.

    Attributes:
        cases: One per attempted case, in their order.
        missing: Number of cases that were not attempted, because a limit was reached.
    """

    arm: str
    cases: tuple[Graded, ...]
    missing: int = 0

    @property
    def success(self) -> float:
        """Share of right attempts, 0 to 1."""
        return fmean(case.grade.right for case in self.cases) if self.cases else 0.0

    @property
    def usage(self) -> Usage:
        """The cost of all attempts."""
        return sum((case.attempt.usage for case in self.cases), Usage())

    @property
    def causes(self) -> Counter[Cause]:
        """Number of failures by cause."""
        return Counter(case.grade.cause for case in self.cases if case.grade.cause)


@dataclass(frozen=True, slots=True)
class ModelEvaluation:
    """The results of all arms.

    Attributes:
        arms: One per arm, in the order in which they were given; the first is the one that others are compared with.
        stopped: Why not all attempts were made; empty if they were.
    """

    model: str
    arms: tuple[ArmResult, ...]
    price: Price | None = None
    stopped: str = ""

    def interval(self, arm: ArmResult) -> tuple[float, float]:
        """95 % bootstrap interval of an arm's success, over queries; zeros if nothing was attempted."""
        return bootstrap_interval([float(case.grade.right) for case in arm.cases]) if arm.cases else (0.0, 0.0)

    def difference(self, arm: ArmResult) -> tuple[float, float, float]:
        """Success minus that of the first arm on the queries that both attempted: mean, and its 95 % interval."""
        ours = {case.case.id: case.grade.right for case in arm.cases}
        theirs = {case.case.id: case.grade.right for case in self.arms[0].cases}
        paired = [float(ours[name]) - float(theirs[name]) for name in ours if name in theirs]
        return (fmean(paired), *bootstrap_interval(paired)) if paired else (0.0, 0.0, 0.0)

    def cost(self, arm: ArmResult) -> float | None:
        """What an arm's attempts cost; None without a price."""
        return self.price.of(arm.usage) if self.price else None

    def to_dict(self) -> dict[str, Any]:
        """JSON values, for ``callsheet eval --model --json``."""
        return {"model": self.model, "stopped": self.stopped, "arms": [self._arm(arm) for arm in self.arms]}

    def _arm(self, arm: ArmResult) -> dict[str, Any]:
        usage, n = arm.usage, max(len(arm.cases), 1)
        return {
            "arm": arm.arm,
            "n": len(arm.cases),
            "missing": arm.missing,
            "success": arm.success,
            "interval": list(self.interval(arm)),
            "difference": list(self.difference(arm)),
            "model_calls": usage.calls / n,
            "tool_calls": sum(len(case.attempt.calls) for case in arm.cases) / n,
            "input_tokens": usage.input_tokens / n,
            "cached_tokens": usage.cached_tokens / n,
            "output_tokens": usage.output_tokens / n,
            "seconds": median(case.attempt.usage.seconds for case in arm.cases) if arm.cases else 0.0,
            "cost": self.cost(arm),
            "causes": dict(arm.causes),
            "failures": [
                {"id": case.case.id, "cause": case.grade.cause, "detail": case.grade.detail}
                for case in arm.cases
                if case.grade.cause
            ],
        }


def sampled(queries: Sequence[LabelledQuery], count: int | None) -> tuple[Case, ...]:
    """The queries with labelled tools as cases, or ``count`` of them: the same ones whatever the order of the file.

    Raises:
        SettingsError: No query has labelled tools.
    """
    labelled = [query for query in queries if query.tools]
    if not labelled:
        raise SettingsError('no query has "tools": an evaluation with a model needs labelled tools')
    by_hash = sorted(labelled, key=lambda query: sha256(f"{query.id}\0{query.query}".encode()).digest())
    kept = {query.id for query in by_hash[:count]}
    return tuple(query_case(query) for query in labelled if query.id in kept)


async def evaluate_arms(
    arms: Sequence[Arm],
    cases: Sequence[Case],
    *,
    model: str,
    log: AttemptLog,
    key: Sequence[object] = (),
    concurrency: int = 1,
    price: Price | None = None,
    max_cost: float | None = None,
    progress: Progress | None = None,
) -> ModelEvaluation:
    """Lets every arm attempt every case, case by case, and grades the attempts.

    An attempt that the log has is not made again. A case is attempted by all arms before the next one begins, so an
    evaluation that ends early still compares them on the same cases.

    Args:
        arms: The arms; the others are compared with the first.
        cases: Labelled queries, see ``sampled``, or tasks.
        model: Name of the model.
        log: Keeps the attempts.
        key: What decides an attempt beside arm, model and case: digests of catalog and data, settings; it is hashed
            for each attempt.
        concurrency: Maximum attempts at a time; 1 for tasks.
        price: The price of the model.
        max_cost: No attempt begins after new attempts have cost this much.
        progress: Called after each attempt with the number of finished attempts and of all.

    Raises:
        SettingsError: A task cannot be prepared.
    """
    run = _Run(log, concurrency, _bound(price, max_cost), len(arms) * len(cases), progress)
    pairs = [(case, arm) for case in cases for arm in arms]
    attempts = await asyncio.gather(
        *(run.attempt(arm, case, log.key(model, arm.name, case.key, *key)) for case, arm in pairs)
    )
    made = {(arm.name, case.id): found for (case, arm), found in zip(pairs, attempts, strict=True) if found}
    results = []
    for arm in arms:
        done = [(case, made[arm.name, case.id]) for case in cases if (arm.name, case.id) in made]
        found = tuple(Graded(case, attempt, case.grade(attempt)) for case, attempt in done)
        results.append(ArmResult(arm.name, found, len(cases) - len(found)))
    return ModelEvaluation(model, tuple(results), price, run.stopped)


def _bound(price: Price | None, most: float | None) -> Callable[[Usage], str]:
    """Why no further attempt begins after some cost; empty if one may."""
    if price is None or most is None:
        return lambda spent: ""
    return lambda spent: f"the new attempts cost {price.of(spent):.4f} of {most:g}" if price.of(spent) >= most else ""


class _Run:
    """The state of one evaluation."""

    def __init__(
        self, log: AttemptLog, concurrency: int, bound: Callable[[Usage], str], total: int, progress: Progress | None
    ) -> None:
        self.stopped = ""
        self._log, self._bound, self._total, self._progress = log, bound, total, progress
        self._turn = asyncio.Semaphore(concurrency)
        self._spent = Usage()
        self._done = 0
        self._failures: Counter[str] = Counter()

    async def attempt(self, arm: Arm, case: Case, key: str) -> Attempt | None:
        """The attempt: the one of the log, or a new one; None if a limit is reached."""
        known = self._log.get(key)
        if known is None:
            async with self._turn:
                known = await self._made(arm, case, key)
        self._done += 1
        if self._progress:
            self._progress(self._done, self._total)
        return known

    async def _made(self, arm: Arm, case: Case, key: str) -> Attempt | None:
        if why := self._bound(self._spent) or self._refused(arm):
            self.stopped = self.stopped or why
            return None
        made = await case.attempt(arm)
        self._spent += made.usage
        if made.failure:
            self._failures[arm.name] += 1
        else:
            self._failures[arm.name] = -self._total  # it works, so later errors are those of single queries
            self._log.add(key, made)
        return made

    def _refused(self, arm: Arm) -> str:
        if self._failures[arm.name] < _GIVE_UP_AFTER:
            return ""
        return f"the model failed in the first {_GIVE_UP_AFTER} attempts of {arm.name}"
