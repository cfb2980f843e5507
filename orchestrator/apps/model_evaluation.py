"""Lets arms attempt labelled queries, grades what they called, and compares them."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from callsheet.agents import Call, Usage
from callsheet.agents.calls.token_usage import Price
from callsheet.graphs import SettingsError
from callsheet.graphs.storage import cure_of, private_folder, replace_bytes
from callsheet.orchestrator.apps.evaluation_arms import Arm, Attempt
from callsheet.retrievers import LabelledQuery
from callsheet.retrievers.evaluation.evaluator import bootstrap_interval
from callsheet.retrievers.index.node_texts import Progress

CAUSES: Mapping[str, str] = {
    "not retrieved": "the model was not shown the tool",
    "not chosen": "it was shown the tool, and did not call it",
    "wrong arguments": "it called the tool with invalid arguments, or with others than labelled",
    "tool error": "the call failed for another reason",
    "plan": "no step was planned, so no tool could be called",
    "gave up": "a limit, or a question to the user, ended the run first",
    "end state": "it ended, and a check of the end state does not hold",
    "model error": "the model did not answer; asked again in the next evaluation",
}
_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d{1,3})?", re.ASCII)
_GIVE_UP_AFTER = 3


class Grade(NamedTuple):
    """Why an attempt is not right, and the first wanted tools with what happened; the cause is empty if it is right."""

    cause: str = ""
    detail: str = ""


def graded(query: LabelledQuery, attempt: Attempt) -> Grade:
    """Right if every labelled tool was called with valid arguments, which have the labelled values; in any order."""
    if attempt.failure:
        return Grade("model error", attempt.failure)
    grades = (_graded(group, query.arguments, attempt) for group in query.tools)
    return next((grade for grade in grades if grade.cause), Grade())


def _graded(group: Sequence[str], arguments: Mapping[str, Mapping[str, Any]], attempt: Attempt) -> Grade:
    calls = [call for call in attempt.calls if call.tool in group]
    if any(not call.error and _agrees(call, arguments.get(call.tool, {})) for call in calls):
        return Grade()
    if calls:
        cause = "tool error" if all(call.error and call.kind != "refused" for call in calls) else "wrong arguments"
        last = calls[-1]
        differs = f"arguments {dict(last.args)}, labelled {arguments.get(last.tool)}"
        return Grade(cause, f"{last.tool}: {last.error or differs}")
    detail = " or ".join(group) + (f": {attempt.stopped}" if attempt.stopped else "")
    if not attempt.offered and not attempt.steps:
        return Grade("plan", detail)
    if not set(group) & set(attempt.offered):
        return Grade("not retrieved", detail)
    return Grade("gave up" if attempt.stopped else "not chosen", detail)


def _agrees(call: Call, wanted: Mapping[str, Any]) -> bool:
    return all(name in call.args and _same(call.args[name], wanted[name]) for name in wanted)


def _same(given: Any, wanted: Any) -> bool:
    """Equal; texts apart from case and outer blanks, and a plain number like its text."""
    if isinstance(given, bool) or isinstance(wanted, bool):
        return given is wanted
    if isinstance(given, str | int | float) and isinstance(wanted, str | int | float):
        return _plain(given) == _plain(wanted)
    return bool(given == wanted)


def _plain(value: str | float) -> str | Decimal:
    text = str(value).strip().casefold()
    return Decimal(text) if _NUMBER.fullmatch(text) else text


class Graded(NamedTuple):
    """An attempt of one arm at one query, with its grade."""

    query: LabelledQuery
    attempt: Attempt
    grade: Grade


@dataclass(frozen=True, slots=True)
class ArmResult:
    """The attempts of one arm, in the order of the queries, and the number of those that a limit left out."""

    arm: str
    cases: tuple[Graded, ...]
    missing: int = 0

    @property
    def right(self) -> dict[str, float]:
        """Id of a query -> 1.0 if the attempt is right, otherwise 0.0."""
        return {case.query.id: float(not case.grade.cause) for case in self.cases}

    @property
    def success(self) -> float:
        """Share of right attempts, 0 to 1."""
        return fmean(self.right.values()) if self.cases else 0.0

    @property
    def usage(self) -> Usage:
        """The cost of all attempts."""
        return sum((case.attempt.usage for case in self.cases), Usage())

    @property
    def causes(self) -> Counter[str]:
        """Number of failures by cause."""
        return Counter(case.grade.cause for case in self.cases if case.grade.cause)


@dataclass(frozen=True, slots=True)
class ModelEvaluation:
    """The results of all arms; the others are compared with the first.

    Attributes:
        stopped: Why not all attempts were made; empty if they were.
    """

    model: str
    arms: tuple[ArmResult, ...]
    price: Price | None = None
    stopped: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON values, for ``callsheet eval --model --json``. Calls and tokens are means, seconds a median."""
        return {"model": self.model, "stopped": self.stopped, "arms": [self.row(arm) for arm in self.arms]}

    def row(self, arm: ArmResult) -> dict[str, Any]:
        """An arm's figures; intervals are 95 % bootstraps over queries, the difference is to the first arm, paired."""
        usage, n, ours, theirs = arm.usage, max(len(arm.cases), 1), arm.right, self.arms[0].right
        return {
            "name": arm.arm,
            "n": len(arm.cases),
            "missing": arm.missing,
            "success": arm.success,
            "interval": _mean([*ours.values()])[1:],
            "difference": _mean([ours[name] - theirs[name] for name in ours if name in theirs]),
            "calls": usage.calls / n,
            "tool_calls": sum(len(case.attempt.calls) for case in arm.cases) / n,
            **{name: getattr(usage, name) / n for name in ("input_tokens", "cached_tokens", "output_tokens")},
            "seconds": median(case.attempt.usage.seconds for case in arm.cases) if arm.cases else 0.0,
            "cost": self.price.of(usage) if self.price else None,
            "failures": dict(arm.causes),
            "failed": [{"id": case.query.id, **case.grade._asdict()} for case in arm.cases if case.grade.cause],
        }


def _mean(values: Sequence[float]) -> list[float]:
    """A mean with its interval; zeros without values."""
    return [fmean(values), *bootstrap_interval(values)] if values else [0.0, 0.0, 0.0]


def sampled(queries: Sequence[LabelledQuery], count: int | None) -> tuple[LabelledQuery, ...]:
    """The queries with labelled tools, or ``count`` of them: the same ones whatever the order of the file.

    Raises:
        SettingsError: No query has labelled tools.
    """
    labelled = [query for query in queries if query.tools]
    if not labelled:
        raise SettingsError('no query has "tools": an evaluation with a model needs labelled tools')
    by_hash = sorted(labelled, key=lambda query: digest(query.id, query.query))
    chosen = {query.id for query in by_hash[:count]}
    return tuple(query for query in labelled if query.id in chosen)


def digest(*parts: Any) -> str:
    """SHA-256 of JSON values."""
    return sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


async def evaluate_arms(
    arms: Sequence[Arm],
    queries: Sequence[LabelledQuery],
    *,
    model: str,
    folder: Path,
    key: Sequence[object] = (),
    grade: Callable[[LabelledQuery, Attempt], Grade] = graded,
    concurrency: int = 1,
    price: Price | None = None,
    max_cost: float | None = None,
    progress: Progress | None = None,
) -> ModelEvaluation:
    """Lets every arm attempt every query, query by query, and grades the attempts.

    A stored attempt is not made again. A query is attempted by all arms before the next one begins, so an evaluation
    that ends early still compares them on the same queries.

    Args:
        arms: The arms; the others are compared with the first.
        queries: Labelled queries, see ``sampled``.
        model: Name of the model.
        folder: Stores the attempts, each at once and in a file of its own.
        key: What decides an attempt beside arm, model and request, as JSON values; labels do not.
        grade: Grades an attempt.
        concurrency: Maximum attempts at a time.
        price: The price of the model; no attempt begins after new attempts have cost ``max_cost``.
        max_cost: In the currency of the price.
        progress: Called after each attempt with the number of finished attempts and of all.

    Raises:
        SettingsError: Attempts cannot be stored in the folder.
    """
    pairs = [(query, arm) for query in queries for arm in arms]
    turn, failures, spent, stopped, done = asyncio.Semaphore(concurrency), Counter[str](), Usage(), "", 0

    def limit(arm: Arm) -> str:
        if price and max_cost is not None and price.of(spent) >= max_cost:
            return f"the new attempts cost {price.of(spent):.4f} of {max_cost:g}"
        if failures[arm.name] >= _GIVE_UP_AFTER:
            return f"the model failed in the first {_GIVE_UP_AFTER} attempts of {arm.name}"
        return ""

    async def made(query: LabelledQuery, arm: Arm) -> Attempt | None:
        nonlocal spent, stopped
        file = folder / f"{digest(model, arm.name, query.query, *key)}.json"
        with suppress(OSError, ValueError):  # there is none, or it is not one
            return Attempt.model_validate_json(file.read_bytes())
        async with turn:
            if why := limit(arm):
                stopped = stopped or why
                return None
            attempt = await arm.attempt(query.query)
            spent += attempt.usage
            # Once an arm works, later errors are those of single queries.
            failures[arm.name] = failures[arm.name] + 1 if attempt.failure else -len(pairs)
            if not attempt.failure:
                _store(file, attempt)
            return attempt

    async def counted(query: LabelledQuery, arm: Arm) -> Graded | None:
        nonlocal done
        attempt = await made(query, arm)
        done += 1
        if progress:
            progress(done, len(pairs))
        return Graded(query, attempt, grade(query, attempt)) if attempt else None

    found = await asyncio.gather(*(counted(query, arm) for query, arm in pairs))
    results = []
    for place, arm in enumerate(arms):
        cases = tuple(filter(None, found[place :: len(arms)]))
        results.append(ArmResult(arm.name, cases, len(queries) - len(cases)))
    return ModelEvaluation(model, tuple(results), price, stopped)


def _store(file: Path, attempt: Attempt) -> None:
    try:
        private_folder(file.parent)
        replace_bytes(file, attempt.model_dump_json().encode())
    except OSError as error:
        raise SettingsError(f"the attempt cannot be stored in {file}: {error.strerror}: {cure_of(error)}") from error
