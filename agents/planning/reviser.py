"""Decides whether a running plan should be revised, and asks a model for the revision."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from callsheet.agents.keyless import split
from callsheet.agents.models.chat_models import ModelError
from callsheet.agents.models.prompts import REVISER
from callsheet.agents.models.structured_output import structured
from callsheet.agents.models.token_usage import Usage
from callsheet.agents.planning.drafts import PlanRevision, Question
from callsheet.agents.planning.plan import Plan, StepResult
from callsheet.agents.planning.planner import TooManyStepsError
from callsheet.agents.planning.revision import Revision, revised
from callsheet.agents.work.answer import report
from callsheet.graphs.catalog.errors import PlanError

_CONTINGENT = re.compile(
    r"\b(?:if|unless|otherwise|else|until|depend(?:s|ing)? on|in case|as (?:needed|appropriate)|what is found)\b",
    re.IGNORECASE,
)
"""Words for a condition on a result."""
_WORD = re.compile(r"[^\W\d_]{4,}")
_STEM = 4
_COVERED = 0.5
"""Minimum share of the request's words in the steps of a plan that covers the request."""
_EMPTY = frozenset(("", "[]", "{}", "null", "none"))


@dataclass(frozen=True, slots=True)
class Revised:
    """The outcome of asking a model for a revision.

    Attributes:
        revision: What was changed, or why nothing was.
        ask: A question to the user; None without one.
    """

    plan: Plan
    revision: Revision
    ask: Question | None = None
    usage: Usage = field(default_factory=Usage)


def reason_to_revise(plan: Plan, results: Mapping[str, StepResult], request: str, wave: Collection[str]) -> str:
    """Why a model should revise a plan after a wave; empty if the plan runs as expected.

    Reasons are: a step of the wave was not done or found nothing, the plan is open or contains a condition, or all
    steps have run and cover only a part of the request.
    """
    latest = [results[name] for name in wave if name in results]
    if lost := [result.id for result in latest if result.status != "done"]:
        return f"step {', '.join(lost)} was not done"
    if empty := [result.id for result in latest if _found_nothing(result)]:
        return f"step {', '.join(empty)} found nothing"
    if plan.open:
        return "the plan depends on what is found"
    if any(_CONTINGENT.search(text) for text in (request, *(step.text for step in plan.steps))):
        return "the request has a condition"
    over = all(step.id in results for step in plan.steps)
    return "the plan covers only a part of the request" if over and not _covers(plan, request) else ""


async def revise(
    plan: Plan,
    results: Mapping[str, StepResult],
    request: str,
    model: BaseChatModel,
    *,
    why: str,
    wave: int,
    prompt: str = REVISER,
    outline: str = "",
    answers: Sequence[str] = (),
    earlier: Collection[str] = (),
    max_steps: int = 12,
) -> Revised:
    """Asks a model to revise a plan after some of its steps.

    A revision that cannot be applied may be corrected once. After that, or if the model does not answer, the plan is
    not changed and the revision says why.

    Args:
        plan: The plan.
        results: The results so far, by step id.
        request: The request.
        model: The chat model.
        why: The reason for the revision; see ``reason_to_revise``.
        wave: Number of waves that have run.
        prompt: The model's system prompt.
        outline: The available agents, as text for the model.
        answers: Questions that the user answered, with the answers.
        earlier: Ids of results of earlier requests.
        max_steps: Maximum number of steps.
    """
    told = _told(plan, results, request, why, outline, answers)
    messages: list[AnyMessage] = [SystemMessage(prompt), HumanMessage(told)]
    spent, complaint, too_many = Usage(), "", ""
    for _ in ("first", "repair"):
        try:
            answer = await structured(model, PlanRevision, messages)
        except ModelError as error:
            complaint, spent = str(error), spent + error.usage
            break
        spent, draft = spent + answer.usage, answer.value
        try:
            after, revision = revised(plan, draft, results, wave=wave, max_steps=max_steps, earlier=earlier)
        except PlanError as error:
            complaint = str(error)
            too_many = complaint if isinstance(error, TooManyStepsError) else too_many
            messages = [*messages, HumanMessage(f"That revision cannot be used: {complaint}. Give a corrected one.")]
        else:
            return Revised(after, revision, draft.ask, spent)
    reason = f"not revised, although {why}: {too_many or complaint}"
    ended = plan.model_copy(update={"incomplete": reason})
    return Revised(ended, Revision(wave=wave, reason=reason, refused=True), None, spent)


def _found_nothing(result: StepResult) -> bool:
    outputs = [call.output.strip().casefold() for call in result.calls if not call.error]
    return bool(outputs) and all(output in _EMPTY for output in outputs)


def _covers(plan: Plan, request: str) -> bool:
    """Whether a plan has a step for each clause of a request, and at least half of its words."""
    try:
        clauses = len(split(request).steps)
    except PlanError:  # too long for rules: only the words count
        clauses = 1
    if len(plan.steps) < clauses:
        return False
    wanted = {word[:_STEM].casefold() for word in _WORD.findall(request)}
    planned = {word[:_STEM].casefold() for step in plan.steps for word in _WORD.findall(step.text)}
    return len(wanted & planned) >= _COVERED * len(wanted)


def _told(
    plan: Plan,
    results: Mapping[str, StepResult],
    request: str,
    why: str,
    outline: str,
    answers: Sequence[str],
) -> str:
    run = [report(results[step.id]) for step in plan.steps if step.id in results]
    left = [_planned(step.id, step.text, step.depends_on) for step in plan.steps if step.id not in results]
    parts = (
        f"Request: {request}",
        "\n".join(answers),
        f"You are asked because {why}.",
        "Results so far:\n\n" + "\n\n".join(run),
        "Steps that have not run:\n" + ("\n".join(left) or "none"),
        f"Agents that may help:\n{outline}" if outline else "",
    )
    return "\n\n".join(filter(None, parts))


def _planned(step_id: str, text: str, depends_on: Sequence[str]) -> str:
    return f"{step_id}. {text}" + (f" (after {', '.join(depends_on)})" if depends_on else "")
