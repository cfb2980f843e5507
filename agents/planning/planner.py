"""From a request to a plan: by a model with structured output, or by rules."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, Field, ValidationError

from callsheet.agents.keyless import split
from callsheet.agents.models.chat_models import ModelError, answered
from callsheet.agents.models.prompts import PLANNER
from callsheet.agents.planning.plan import Plan, Step
from callsheet.graphs.catalog.errors import PlanError
from callsheet.graphs.text.request_length import bounded

_WORD = re.compile(r"\w{3,}")
_STEM = 4


class TooManyStepsError(PlanError):
    """A request needs more steps than a plan may have."""


class PlannedStep(BaseModel):
    """One step of a plan."""

    id: str = Field(description='"1", "2", ...')
    text: str = Field(description="What to do, in the request's own words")
    depends_on: list[str] = Field(default_factory=list, description="Ids of the steps whose results this one needs")


class PlanDraft(BaseModel):
    """The steps that a request needs."""

    steps: list[PlannedStep]


async def decompose(
    request: str,
    model: BaseChatModel | None = None,
    *,
    prompt: str = PLANNER,
    max_steps: int = 12,
    max_request: int = 32_000,
) -> Plan:
    """Splits a request into a directed acyclic graph of steps.

    A model's plan must be a DAG of at most ``max_steps`` steps, each in the request's own words; it gets one
    chance to repair a plan that is not. After that the request is one step, and the plan's note says why; but a
    request that needs too many steps is refused, for one step would do a part of it only.

    Args:
        request: What the user wants.
        model: What plans; rules where none is given.
        prompt: The model's system prompt.
        max_steps: How many steps a plan may have.
        max_request: How many characters the request may have.

    Raises:
        PlanError: The request is empty, or needs too many steps (``TooManyStepsError``).
        RequestError: The request is too long.
    """
    request = bounded(request, max_request, "max_request")
    if not request.strip():
        raise PlanError("the request is empty: say what is to be done")
    if model is None:
        # In a thread: the rules take their time, and others wait for this loop.
        plan = await asyncio.to_thread(split, request)
        _check_number(len(plan.steps), max_steps)
        return plan
    messages: list[AnyMessage] = [SystemMessage(prompt), HumanMessage(request)]
    complaint, too_many = "", None
    for attempt in ("first", "repair"):
        try:
            plan = _checked(await _draft(model, messages), request, max_steps)
        except ModelError as error:
            return _single(request, str(error))
        except PlanError as error:
            complaint = str(error)
            too_many = error if isinstance(error, TooManyStepsError) else too_many
            messages = [*messages, HumanMessage(f"That plan cannot be used: {complaint}. Give a corrected plan.")]
        else:
            return plan if attempt == "first" else plan.model_copy(update={"note": f"repaired: {complaint}"})
    if too_many is not None:
        raise too_many
    return _single(request, f"the model's plan could not be used: {complaint}")


async def _draft(model: BaseChatModel, messages: Sequence[AnyMessage]) -> PlanDraft:
    structured = model.with_structured_output(PlanDraft, include_raw=True)
    # A chat would show the plan's JSON, token by token, as if it were said to the user.
    quiet: RunnableConfig = {"tags": [TAG_NOSTREAM]}
    answer: Any = await answered(structured.ainvoke(list(messages), quiet))
    parsed = answer.get("parsed")
    if isinstance(parsed, PlanDraft):
        return parsed
    raise PlanError(f"it is not of the asked form ({answer.get('parsing_error') or 'no plan was given'})")


def _checked(draft: PlanDraft, request: str, max_steps: int) -> Plan:
    if not draft.steps:
        raise PlanError("it has no steps")
    _check_number(len(draft.steps), max_steps)
    for step in draft.steps:
        if not _grounded(step.text, request):
            raise PlanError(f"step {step.id} ({step.text!r}) shares no word with the request")
    try:
        return Plan(
            steps=tuple(Step(id=s.id, text=s.text, depends_on=tuple(dict.fromkeys(s.depends_on))) for s in draft.steps)
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise PlanError(str(first.get("ctx", {}).get("error") or first["msg"])) from error


def _grounded(text: str, request: str) -> bool:
    """Whether a step is about the request; a text without words that could be compared passes."""
    said = {word[:_STEM] for word in _WORD.findall(request.casefold())}
    words = {word[:_STEM] for word in _WORD.findall(text.casefold())}
    return not words or not said or bool(words & said)


def _check_number(steps: int, most: int) -> None:
    if steps > most:
        raise TooManyStepsError(
            f"the request needs {steps} steps, at most {most} are allowed: ask for less at once, or raise max_steps"
        )


def _single(request: str, why: str) -> Plan:
    return Plan(steps=(Step(id="1", text=request.strip()),), note=f"taken as a single step: {why}")
