"""Whether an attempt did what a labelled query wants, and if not, why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from callsheet.agents import Call
from callsheet.orchestrator.apps.model_evaluation.attempts import Attempt
from callsheet.retrievers import LabelledQuery

Cause = Literal[
    "", "not retrieved", "not chosen", "wrong arguments", "tool error", "plan", "gave up", "end state", "model error"
]
CAUSES: Mapping[Cause, str] = {
    "not retrieved": "the model was not shown the tool",
    "not chosen": "it was shown the tool, and did not call it",
    "wrong arguments": "it called the tool with invalid arguments, or with others than labelled",
    "tool error": "the call failed for another reason",
    "plan": "no step was planned, so no tool could be called",
    "gave up": "a limit, or a question to the user, ended the run first",
    "end state": "it ended, and a check of the task does not hold",
    "model error": "the model did not answer; asked again in the next evaluation",
}

_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Grade:
    """The grade of one attempt.

    Attributes:
        cause: Why it is not right; empty if every wanted tool was called with valid arguments, which have the labelled
            values where there are any.
        detail: The first wanted tools that were not called rightly, with what happened.
        extra: Number of calls of tools that are not wanted.
    """

    cause: Cause
    detail: str = ""
    extra: int = 0

    @property
    def right(self) -> bool:
        """Whether the attempt is right."""
        return not self.cause


def graded(query: LabelledQuery, attempt: Attempt) -> Grade:
    """The grade of an attempt; the order of calls does not count."""
    wanted = {tool for group in query.tools for tool in group}
    extra = sum(call.tool not in wanted and bool(call.agent) for call in attempt.calls)
    if attempt.failure:
        return Grade("model error", attempt.failure, extra)
    for group in query.tools:
        if cause := _cause(group, query.arguments, attempt):
            return Grade(cause, _detail(group, query, attempt), extra)
    return Grade("", extra=extra)


def graded_task(attempt: Attempt) -> Grade:
    """The grade of an attempt at a task: by its end state alone, whatever was called."""
    failed = [f"{call.tool}: {call.error}" for call in attempt.calls if call.error]
    if attempt.failure:
        return Grade("model error", attempt.failure)
    if not attempt.unmet:
        return Grade("")
    unmet = "; ".join(attempt.unmet)
    if not attempt.offered and not attempt.steps:
        return Grade("plan", unmet)
    if attempt.stopped:
        return Grade("gave up", f"{unmet}; {attempt.stopped}")
    return Grade("tool error", f"{unmet}; {failed[-1]}") if failed else Grade("end state", unmet)


def _cause(group: tuple[str, ...], arguments: Mapping[str, Mapping[str, Any]], attempt: Attempt) -> Cause:
    calls = [call for call in attempt.calls if call.tool in group]
    if any(_is_right(call, arguments.get(call.tool, {})) for call in calls):
        return ""
    if calls:
        return "tool error" if all(call.error and call.kind != "refused" for call in calls) else "wrong arguments"
    if not attempt.offered and not attempt.steps:
        return "plan"
    if not set(group) & set(attempt.offered):
        return "not retrieved"
    return "gave up" if attempt.stopped else "not chosen"


def _is_right(call: Call, wanted: Mapping[str, Any]) -> bool:
    return not call.error and all(name in call.args and _same(call.args[name], wanted[name]) for name in wanted)


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


def _detail(group: tuple[str, ...], query: LabelledQuery, attempt: Attempt) -> str:
    tools = " or ".join(group)
    calls = [call for call in attempt.calls if call.tool in group]
    if calls:
        wanted = query.arguments.get(calls[-1].tool)
        return f"{calls[-1].tool}: {calls[-1].error or f'arguments {dict(calls[-1].args)}, labelled {wanted}'}"
    return f"{tools}: {attempt.stopped}" if attempt.stopped else tools
