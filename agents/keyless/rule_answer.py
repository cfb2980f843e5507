"""The answer without a model: the result of each step, and what was not done and why."""

from __future__ import annotations

from collections.abc import Sequence

from callsheet.agents.keyless.entities.result_values import line
from callsheet.agents.planning.plan import StepResult

_LONGEST = 2_000
_HEADINGS = {
    "failed": "Failed",
    "outcome_unknown": "Outcome unknown",
    "needs_input": "Needs your input",
    "skipped": "Skipped",
}


def compose(request: str, results: Sequence[StepResult]) -> str:
    """Lists the results of a plan, one line or paragraph per step, and what was not done.

    The steps that are done come first, then those that failed, need input or were skipped.
    """
    done = [result for result in results if result.status == "done"]
    parts = [_shortened(_said(result)) for result in done]
    parts += not_done(results)
    if not done and not any(map(_may_have_done, results)):
        parts.insert(
            0, f'Nothing was done of "{_shortened(request.strip(), 200)}".' if request.strip() else "Nothing was done."
        )
    return "\n".join(parts)


def _may_have_done(result: StepResult) -> bool:
    """Whether a step that is not done has done something, as far as known."""
    return result.status == "outcome_unknown" or any(not call.error for call in result.calls)


def not_done(results: Sequence[StepResult]) -> list[str]:
    """A line for each step that failed, needs input or was skipped, with the reason."""
    return [
        f"{heading}: {_why(result)}"
        for status, heading in _HEADINGS.items()
        for result in results
        if result.status == status
    ]


def _said(result: StepResult) -> str:
    return line(result) if result.result.strip() else f"{result.text.strip()}: done"


def _why(result: StepResult) -> str:
    reason = result.error.strip() or result.result.strip() or "no reason was given"
    return f"{result.text.strip()}: {_shortened(reason)}"


def _shortened(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest].rstrip()} ... ({len(text)} characters in all)"
