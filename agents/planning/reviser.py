"""Decides whether a running plan should be revised, and asks a model for the revision."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.language_models import BaseChatModel

from callsheet.agents.models.prompts import REVISER
from callsheet.agents.models.token_usage import Usage
from callsheet.agents.planning.drafts import PlanRevision, Question
from callsheet.agents.planning.plan import Plan, StepResult
from callsheet.agents.planning.planner import read_draft
from callsheet.agents.planning.revision import Revision, revised
from callsheet.agents.work.context import plan_lines, reports


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


def reason_to_revise(plan: Plan, results: Mapping[str, StepResult], wave: Collection[str]) -> str:
    """Why a model should revise a plan after a wave; empty if the plan runs as expected.

    Reasons are: a step of the wave failed, which is also how a worker asks for another plan; or the plan is open. A
    step that lacks input is no reason: only a person can give it.
    """
    if lost := [name for name in wave if name in results and results[name].status not in ("done", "needs_input")]:
        return f"step {', '.join(lost)} was not done"
    return "the plan is open: it depends on what was found" if plan.open else ""


async def revise(
    plan: Plan,
    results: Mapping[str, StepResult],
    request: str,
    model: BaseChatModel,
    *,
    why: str,
    wave: int,
    prompt: str = REVISER,
    context: str = "",
    replaced: Sequence[StepResult] = (),
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
        context: What the model should know besides the plan: agents, surroundings.
        replaced: Results of steps that earlier revisions replaced.
        answers: Questions that the user answered, with the answers.
        earlier: Ids of results of earlier requests.
        max_steps: Maximum number of steps.
    """
    run = [*replaced, *(results[step.id] for step in plan.steps if step.id in results)]
    told = _told(plan, run, request, why, context, answers)

    def read(draft: PlanRevision) -> Revised:
        after, revision = revised(plan, draft, results, wave=wave, max_steps=max_steps, earlier=earlier)
        stays = plan.open if draft.open is None else draft.open
        return Revised(after.model_copy(update={"open": stays}), revision, draft.ask)

    drafted = await read_draft(model, PlanRevision, prompt, told, read)
    if drafted.value is not None:
        return replace(drafted.value, usage=drafted.usage)
    reason = f"not revised, although {why}: {drafted.error}"
    ended = plan.model_copy(update={"incomplete": reason})
    return Revised(ended, Revision(wave=wave, reason=reason, refused=True), None, drafted.usage)


def _told(plan: Plan, run: Sequence[StepResult], request: str, why: str, context: str, answers: Sequence[str]) -> str:
    ended = {result.id for result in run}
    left = plan_lines(step for step in plan.steps if step.id not in ended)
    parts = (
        f"Request: {request}",
        "\n".join(answers),
        f"You are asked because {why}.",
        f"Results so far:\n\n{reports(run)}",
        f"Steps that have not run:\n{left or 'none'}",
        context,
    )
    return "\n\n".join(filter(None, parts))
