"""Grades what a chat model did with labelled queries in several arms, and compares the arms."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
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
from callsheet.orchestrator.apps.model_arms import Arm, Attempt
from callsheet.retrievers import LabelledQuery
from callsheet.retrievers.evaluation.evaluator import bootstrap_interval
from callsheet.retrievers.evaluation.labelled_queries import Arguments
from callsheet.retrievers.index.node_texts import Progress

CAUSES: Mapping[str, str] = {
    "not retrieved": "the model was not shown the tool",
    "not chosen": "it was shown the tool, and did not call it",
    "wrong arguments": "it called the tool with invalid arguments, or with others than labelled",
    "tool error": "the call failed for another reason",
    "plan": "no step was planned, so no tool could be called",
    "gave up": "a limit, or a question to the user, ended the run first",
    "model error": "the model did not answer; asked again in the next evaluation",
}
_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d{1,3})?", re.ASCII)


class Grade(NamedTuple):
    """The grade of an attempt: the cause of its failure with the tools that were expected; empty if it is right."""

    cause: str = ""
    detail: str = ""


def grade_attempt(query: LabelledQuery, attempt: Attempt) -> Grade:
    """Grades an attempt: right if every labelled tool was called with valid arguments, in any order.

    If arguments are labelled, those of the call must agree with them.
    """
    if attempt.failure:
        return Grade("model error", attempt.failure)
    for alternatives in query.tools:
        grade = _grade_of_one(alternatives, query.arguments, attempt)
        if grade.cause:
            return grade
    return Grade()


def _grade_of_one(alternatives: Sequence[str], arguments: Arguments, attempt: Attempt) -> Grade:
    """Grades one labelled tool, for which any of the alternatives counts."""
    calls = [call for call in attempt.calls if call.tool in alternatives]
    if any(_is_right(call, arguments.get(call.tool, {})) for call in calls):
        return Grade()
    if calls:
        return _grade_of_calls(calls, arguments)
    detail = " or ".join(alternatives)
    if attempt.stopped:
        detail += f": {attempt.stopped}"
    if not attempt.offered and not attempt.steps:
        return Grade("plan", detail)
    if not set(alternatives) & set(attempt.offered):
        return Grade("not retrieved", detail)
    return Grade("gave up" if attempt.stopped else "not chosen", detail)


def _is_right(call: Call, labelled: Mapping[str, Any]) -> bool:
    """Returns whether a call succeeded and has all the labelled arguments; others are free."""
    if call.error:
        return False
    return all(name in call.args and _agree(call.args[name], value) for name, value in labelled.items())


def _grade_of_calls(calls: Sequence[Call], arguments: Arguments) -> Grade:
    """Grades calls of which none is right; the detail is about the last one."""
    last = calls[-1]
    what = last.error or f"arguments {dict(last.args)}, labelled {arguments.get(last.tool)}"
    # A call with invalid arguments is refused before it is sent.
    is_error_of_the_tool = all(call.error and call.kind != "refused" for call in calls)
    return Grade("tool error" if is_error_of_the_tool else "wrong arguments", f"{last.tool}: {what}")


def _agree(value: Any, labelled: Any) -> bool:
    """Returns whether two values are equal; texts apart from case and outer blanks, and a number like its text."""
    if isinstance(value, bool) or isinstance(labelled, bool):
        return value is labelled
    return bool(_comparable(value) == _comparable(labelled))


def _comparable(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        return value
    text = str(value).strip().casefold()
    return Decimal(text) if _NUMBER.fullmatch(text) else text


class Graded(NamedTuple):
    """An attempt of one arm at one query, with its grade."""

    query: LabelledQuery
    attempt: Attempt
    grade: Grade


@dataclass(frozen=True, slots=True)
class ArmResult:
    """The attempts of one arm, in the order of the queries; ``missing`` attempts were not made because of a limit."""

    arm: str
    cases: tuple[Graded, ...]
    missing: int = 0

    @property
    def right(self) -> dict[str, float]:
        """Returns 1.0 for each query whose attempt is right, otherwise 0.0, by the id of the query."""
        return {case.query.id: float(not case.grade.cause) for case in self.cases}

    @property
    def success(self) -> float:
        """Returns the share of right attempts, 0 to 1."""
        return fmean(self.right.values()) if self.cases else 0.0

    @property
    def usage(self) -> Usage:
        """Returns the cost of all attempts."""
        return sum((case.attempt.usage for case in self.cases), Usage())

    @property
    def failures(self) -> list[Graded]:
        """Returns the attempts that are not right."""
        return [case for case in self.cases if case.grade.cause]

    @property
    def causes(self) -> Counter[str]:
        """Returns the number of failures by cause."""
        return Counter(case.grade.cause for case in self.failures)


@dataclass(frozen=True, slots=True)
class ModelEvaluation:
    """The results of all arms, compared with the first; ``stopped`` is the reason if some attempts were not made."""

    model: str
    arms: tuple[ArmResult, ...]
    price: Price | None = None
    stopped: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values, for ``callsheet eval --model --json``. Calls and tokens are means, seconds a median."""
        return {"model": self.model, "stopped": self.stopped, "arms": [self.row(arm) for arm in self.arms]}

    def row(self, arm: ArmResult) -> dict[str, Any]:
        """Returns the figures of an arm.

        Intervals are 95 % bootstraps over queries. The difference is to the first arm, over the queries that both
        attempted, with its interval.
        """
        n = max(len(arm.cases), 1)
        usage = arm.usage
        first = self.arms[0].right
        differences = [value - first[query] for query, value in arm.right.items() if query in first]
        return {
            "name": arm.arm,
            "n": len(arm.cases),
            "missing": arm.missing,
            "success": arm.success,
            "interval": list(_interval(list(arm.right.values()))),
            "difference": [fmean(differences) if differences else 0.0, *_interval(differences)],
            "calls": usage.calls / n,
            "tool_calls": sum(len(case.attempt.calls) for case in arm.cases) / n,
            "input_tokens": usage.input_tokens / n,
            "cached_tokens": usage.cached_tokens / n,
            "output_tokens": usage.output_tokens / n,
            "seconds": median(case.attempt.usage.seconds for case in arm.cases) if arm.cases else 0.0,
            "cost": self.price.of(usage) if self.price else None,
            "failures": dict(arm.causes),
            "failed": [{"id": case.query.id, **case.grade._asdict()} for case in arm.failures],
        }


def _interval(values: Sequence[float]) -> tuple[float, float]:
    return bootstrap_interval(values) if values else (0.0, 0.0)


def sample_queries(queries: Sequence[LabelledQuery], count: int | None) -> tuple[LabelledQuery, ...]:
    """Returns the queries with labelled tools, or a sample of ``count`` that does not depend on their order.

    Raises:
        SettingsError: No query has labelled tools.
    """
    labelled = [query for query in queries if query.tools]
    if not labelled:
        raise SettingsError('no query has "tools": an evaluation with a model needs labelled tools')
    by_hash = sorted(labelled, key=lambda query: digest_of_parts(query.id, query.query))
    sample = {query.id for query in by_hash[:count]}
    return tuple(query for query in labelled if query.id in sample)


def digest_of_parts(*parts: Any) -> str:
    """Returns the SHA-256 of JSON values, in hexadecimal."""
    return sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


async def evaluate_arms(
    arms: Mapping[str, Arm],
    queries: Sequence[LabelledQuery],
    *,
    model: str,
    folder: Path,
    key: Sequence[object] = (),
    concurrency: int = 1,
    price: Price | None = None,
    max_cost: float | None = None,
    progress: Progress | None = None,
) -> ModelEvaluation:
    """Lets every arm attempt every query, query by query, and grades the attempts.

    A query is attempted by all arms before the next one begins, so an evaluation that ends early still compares them on
    the same queries. Each attempt is stored at once in the folder, and is not made again.

    Args:
        arms: The arms by name; the others are compared with the first.
        queries: What is attempted.
        model: Name of the chat model.
        folder: Where attempts are stored.
        key: What else determines an attempt besides arm, model and request, as JSON values.
        concurrency: Maximum number of attempts at the same time.
        price: What tokens cost.
        max_cost: No attempt begins after new ones have cost this much.
        progress: Called after each attempt with the number of attempts made and the total.

    Raises:
        SettingsError: An attempt cannot be stored.
    """
    pairs = [(query, arm) for query in queries for arm in arms]
    turn = asyncio.Semaphore(concurrency)
    spent = Usage()
    stopped = ""
    done = 0

    async def attempt_of(query: LabelledQuery, arm: str) -> Attempt | None:
        """Returns the stored attempt, or makes it; None if the limit of costs is reached."""
        nonlocal spent, stopped
        file = folder / f"{digest_of_parts(model, arm, query.query, *key)}.json"
        # A file that is missing, or was cut while it was written, is no attempt: it is made again.
        with suppress(OSError, ValueError):
            return Attempt.model_validate_json(file.read_bytes())
        async with turn:
            if price and max_cost is not None and price.of(spent) >= max_cost:
                stopped = f"the new attempts cost {price.of(spent):.4f} of {max_cost:g}"
                return None
            attempt = await arms[arm](query.query)
            spent += attempt.usage
        if not attempt.failure:
            _store(attempt, file)
        return attempt

    async def case_of(query: LabelledQuery, arm: str) -> Graded | None:
        nonlocal done
        attempt = await attempt_of(query, arm)
        done += 1
        if progress:
            progress(done, len(pairs))
        return Graded(query, attempt, grade_attempt(query, attempt)) if attempt else None

    cases = await asyncio.gather(*(case_of(query, arm) for query, arm in pairs))
    results = []
    for place, arm in enumerate(arms):
        # The pairs hold the arms in turn, so those of one arm are len(arms) apart.
        own = tuple(case for case in cases[place :: len(arms)] if case is not None)
        results.append(ArmResult(arm, own, missing=len(queries) - len(own)))
    return ModelEvaluation(model, tuple(results), price, stopped)


def _store(attempt: Attempt, file: Path) -> None:
    try:
        private_folder(file.parent)
        replace_bytes(file, attempt.model_dump_json().encode())
    except OSError as error:
        why = f"{error.strerror}: {cure_of(error)}"
        raise SettingsError(f"the attempt cannot be stored in {file}: {why}") from error
