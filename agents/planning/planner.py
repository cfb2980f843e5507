"""Makes a plan for a request, with a model and structured output or by rules, and finds errors of weak models in it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from callsheet.agents.keyless import split
from callsheet.agents.keyless.language.lexicon import FUNCTION_WORDS
from callsheet.agents.models.chat_models import ModelError
from callsheet.agents.models.prompts import PLANNER
from callsheet.agents.models.structured_output import structured
from callsheet.agents.models.token_usage import Usage
from callsheet.agents.planning.drafts import PlanDraft, PlannedStep
from callsheet.agents.planning.plan import Plan, Step, plan_errors
from callsheet.graphs.catalog.errors import PlanError
from callsheet.graphs.text.request_length import bounded


class TooManyStepsError(PlanError):
    """A request needs more steps than a plan may have."""


async def decompose(
    request: str,
    model: BaseChatModel | None = None,
    *,
    prompt: str = PLANNER,
    outline: str = "",
    earlier: Collection[str] = (),
    max_steps: int = 12,
    max_request: int = 32_000,
) -> Plan:
    """Splits a request into a directed acyclic graph of steps.

    A model's plan must be a DAG of at most ``max_steps`` steps; the model may repair an invalid plan once. After that
    the request becomes one step, and the plan's note says why. A step that the request does not ask for is left out
    (``unasked_step``), and the note says so. A request that needs too many steps is refused, because one step would do
    only a part of it. In place of steps, a model may answer directly or ask the user a question.

    Args:
        request: What the user wants.
        model: Makes the plan; rules if None.
        prompt: The model's system prompt.
        outline: The available agents, as text for the model.
        earlier: Ids of results of earlier requests, on which steps may depend too.
        max_steps: Maximum number of steps.
        max_request: Maximum number of characters of the request.

    Raises:
        PlanError: The request is empty, or needs too many steps (``TooManyStepsError``).
        RequestError: The request is too long.
    """
    request = checked_request(request, max_request)
    if model is None:
        # In a thread: the rules take time, and the loop serves others.
        plan = await asyncio.to_thread(split, request, earlier)
        check_number(len(plan.steps), max_steps)
        return plan
    asked = f"{request}\n\nAgents that may help:\n{outline}" if outline else request
    messages: list[AnyMessage] = [SystemMessage(prompt), HumanMessage(asked)]
    complaint, too_many, spent = "", None, Usage()
    for attempt in ("first", "repair"):
        try:
            drafted = await structured(model, PlanDraft, messages)
        except ModelError as error:
            if too_many is not None:
                raise too_many from error
            return single(request, f"taken as a single step: {error}", usage=spent + error.usage)
        spent += drafted.usage
        try:
            plan = _checked(drafted.value, f"{request}\n{outline}", prompt, earlier, max_steps)
        except PlanError as error:
            complaint = str(error)
            too_many = error if isinstance(error, TooManyStepsError) else too_many
            messages = [*messages, HumanMessage(f"That plan cannot be used: {complaint}. Give a corrected plan.")]
        else:
            note = "" if attempt == "first" else f"repaired: {complaint}"
            return _without_unasked(request, plan.model_copy(update={"note": note, "usage": spent}))
    if too_many is not None:
        raise too_many
    return single(request, f"taken as a single step: the model's plan could not be used: {complaint}", usage=spent)


def checked_request(request: str, max_request: int = 32_000) -> str:
    """The request, if it can be planned.

    Raises:
        PlanError: It is empty.
        RequestError: It is too long.
    """
    request = bounded(request, max_request, "max_request")
    if not request.strip():
        raise PlanError("the request is empty: say what is to be done")
    return request


def single(request: str, note: str = "", *, usage: Usage | None = None) -> Plan:
    """A plan of one step, the request itself, for one worker."""
    return Plan(steps=(Step(id="1", text=request.strip()),), note=note, mode="none", usage=usage or Usage())


def drafted_step(draft: PlannedStep, earlier: Collection[str] = (), known: Collection[str] = ()) -> Step:
    """A step from a model's draft, with dependencies on results of earlier requests separated."""
    needs = dict.fromkeys(draft.depends_on)
    source = source_of(draft.for_each or "", [*needs, *known]) if draft.for_each else ""
    return Step(
        id=draft.id,
        text=draft.text,
        depends_on=tuple(dict.fromkeys([name for name in [*needs, source] if name and name not in earlier])),
        for_each=draft.for_each or "",
        uses=tuple(name for name in needs if name in earlier),
    )


def source_of(reference: str, ids: Collection[str]) -> str:
    """The step that ``1.items`` refers to: the longest of these ids that it begins with, else its first part."""
    begins = [name for name in ids if reference == name or reference.startswith((f"{name}.", f"{name}["))]
    return max(begins, key=len, default=re.split(r"[.\[]", reference, maxsplit=1)[0])


def check_number(steps: int, most: int) -> None:
    """Refuses a plan with too many steps.

    Raises:
        TooManyStepsError: There are more than allowed.
    """
    if steps > most:
        raise TooManyStepsError(
            f"the request needs {steps} steps, at most {most} are allowed: ask for less at once, or raise max_steps"
        )


def _checked(draft: PlanDraft, known: str, prompt: str, earlier: Collection[str], max_steps: int) -> Plan:
    if draft.steps:
        check_number(len(draft.steps), max_steps)
        for step in draft.steps:
            if words := copied_words(step.text, prompt, known):
                raise PlanError(f"step {step.id} repeats the instructions ({words!r}), not the request")
            if asks_user(step.text, known):
                raise PlanError(f"step {step.id} asks the user, which no agent can: a question goes into ask")
    with plan_errors():
        if not draft.steps:
            return Plan(steps=(), answer=(draft.answer or "").strip(), ask=draft.ask)
        return Plan(steps=tuple(drafted_step(step, earlier) for step in draft.steps), open=draft.open)


def _without_unasked(request: str, plan: Plan) -> Plan:
    """The plan without steps that were not asked for, with a note; a single step if only one is left."""
    steps, notes = plan.steps, [plan.note] if plan.note else []
    while step := unasked_step(request, steps):
        steps = tuple(other for other in steps if other is not step)
        notes.append(f"step {step.id} ({step.text!r}) was left out: the request does not ask for it")
    note = "; ".join(notes)
    if len(steps) == 1 < len(plan.steps):
        return single(request, note, usage=plan.usage)
    return plan.model_copy(update={"steps": steps, "note": note})


_WORD = re.compile(r"\w+")
_NAME = re.compile(r"\w+(?:[.:/@-]+\w+)*")
_QUESTION = re.compile(r"(?:ask|prompt|request|wait for|get input from)\s+the\s+user\b", re.IGNORECASE)
_COPIED = 6
"""Number of consecutive words of a system prompt that a step does not contain by chance."""


def copied_words(text: str, prompt: str, known: str) -> str:
    """Consecutive words that a step copies from the system prompt and not from ``known``; empty without any."""
    words = _WORD.findall(text.casefold())
    told, asked = (f" {' '.join(_WORD.findall(one.casefold()))} " for one in (prompt, known))
    rows = (" ".join(words[start : start + _COPIED]) for start in range(len(words) - _COPIED + 1))
    return next((row for row in rows if f" {row} " in told and f" {row} " not in asked), "")


def asks_user(text: str, known: str) -> bool:
    """Whether a step is a question to the user, whom no agent can ask, and ``known`` does not say so."""
    return _QUESTION.match(text.strip()) is not None and "the user" not in known.casefold()


def unasked_step(request: str, steps: Sequence[Step]) -> Step | None:
    """A step that the request does not ask for: no other step needs it, and the other steps cover the request.

    With C(text) the content words of a text, r the request, and t the other steps: a step s that no other depends on is
    not asked for if C(s) is not a subset of C(r), and C(r) is a subset of the union of C(t). A plan in other words than
    the request has no such step.

    Returns:
        The last such step; None if there is none.
    """
    needed = {name for step in steps for name in step.depends_on}
    asked = _content_words(request)
    for step in reversed(steps):
        others = (_content_words(other.text) for other in steps if other is not step)
        invents = step.id not in needed and not _content_words(step.text) <= asked
        if asked and invents and asked <= set().union(*others):
            return step
    return None


def _content_words(text: str) -> set[str]:
    return set(_NAME.findall(text.casefold())) - FUNCTION_WORDS
