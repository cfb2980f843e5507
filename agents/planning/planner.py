"""Makes a plan for a request, with a model and structured output."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from callsheet.agents.calls.plan import Mode, Plan, Step, plan_errors, source_of
from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.models.chat_models import ModelError
from callsheet.agents.models.model_output import structured
from callsheet.agents.models.prompts import PLANNER
from callsheet.agents.planning.drafts import PlanDraft, PlannedStep
from callsheet.graphs.catalog.errors import CallsheetError, PlanError
from callsheet.graphs.text.sanitizing import bounded

S = TypeVar("S", bound=BaseModel)
T = TypeVar("T")


class TooManyStepsError(PlanError):
    """A request needs more steps than a plan may have."""


async def decompose(
    request: str,
    model: BaseChatModel,
    *,
    prompt: str = PLANNER,
    context: str = "",
    earlier: Collection[str] = (),
    max_steps: int = 12,
    max_request: int = 32_000,
) -> Plan:
    """Splits a request into a directed acyclic graph of steps; most requests are a single one.

    A model's plan must be a DAG of at most ``max_steps`` steps; the model may repair an invalid plan once. After that
    the request becomes one step, and the plan's note says why. A request that needs too many steps is refused, because
    one step would do only a part of it. In place of steps, a model may answer directly or ask the user a question.

    Args:
        request: What the user wants.
        model: Makes the plan.
        prompt: The model's system prompt.
        context: What the model should know besides the request: agents, surroundings, earlier results.
        earlier: Ids of results of earlier requests, on which steps may depend too.
        max_steps: Maximum number of steps.
        max_request: Maximum number of characters of the request.

    Raises:
        PlanError: The request is empty, or needs too many steps (``TooManyStepsError``).
        RequestError: The request is too long.
    """
    request = checked_request(request, max_request)
    told = "\n\n".join(filter(None, (request, context)))
    drafted = await read_draft(model, PlanDraft, prompt, told, lambda draft: _checked(draft, earlier, max_steps))
    if drafted.value is not None:
        note = f"repaired: {drafted.error}" if drafted.error else ""
        return drafted.value.model_copy(update={"note": note, "usage": drafted.usage})
    if isinstance(drafted.error, TooManyStepsError):
        raise drafted.error
    unusable = "the model's plan could not be used: " if isinstance(drafted.error, PlanError) else ""
    return single(request, f"taken as a single step: {unusable}{drafted.error}", usage=drafted.usage)


@dataclass(frozen=True, slots=True)
class Drafted(Generic[T]):
    """What became of a model's draft.

    Attributes:
        value: What was read from it; None if it could not be used.
        error: Why it, or the draft before it, could not be used; None for a first draft that could.
        usage: Cost of the model's answers.
    """

    value: T | None
    error: CallsheetError | None
    usage: Usage


async def read_draft(
    model: BaseChatModel, schema: type[S], prompt: str, told: str, read: Callable[[S], T]
) -> Drafted[T]:
    """Asks a model for a draft, and a second time if ``read`` refuses the first one.

    Args:
        model: The chat model.
        schema: The form of the draft.
        prompt: The system prompt.
        told: The message.
        read: Makes a value from the draft, or raises a ``PlanError`` that says what is wrong with it.
    """
    messages: list[AnyMessage] = [SystemMessage(prompt), HumanMessage(told)]
    spent, problem = Usage(), None
    for _ in ("first", "repair"):
        try:
            answer = await structured(model, schema, messages)
        except ModelError as error:
            return Drafted(None, problem if isinstance(problem, TooManyStepsError) else error, spent + error.usage)
        spent += answer.usage
        try:
            return Drafted(read(answer.value), problem, spent)
        except PlanError as error:
            problem = problem if isinstance(problem, TooManyStepsError) else error
            messages = [*messages, HumanMessage(f"That cannot be used: {error}. Give a corrected one.")]
    return Drafted(None, problem, spent)


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


def single(request: str, note: str = "", *, mode: Mode = "none", usage: Usage | None = None) -> Plan:
    """A plan of one step, the request itself, for one worker."""
    return Plan(steps=(Step(id="1", text=request.strip()),), note=note, mode=mode, usage=usage or Usage())


def drafted_step(draft: PlannedStep, earlier: Collection[str] = (), known: Collection[str] = ()) -> Step:
    """A step from a model's draft, with dependencies on results of earlier requests separated."""
    needs = dict.fromkeys(draft.depends_on)
    source = source_of(draft.for_each or "", [*needs, *known]) if draft.for_each else ""
    return Step(
        id=draft.id,
        text=draft.text,
        depends_on=tuple(dict.fromkeys([name for name in [*needs, source] if name and name not in earlier])),
        for_each=draft.for_each or "",
        tools=tuple(draft.tools),
        uses=tuple(name for name in needs if name in earlier),
    )


def check_number(steps: int, most: int) -> None:
    """Refuses a plan with too many steps.

    Raises:
        TooManyStepsError: There are more than allowed.
    """
    if steps > most:
        raise TooManyStepsError(
            f"the request needs {steps} steps, at most {most} are allowed: ask for less at once, or raise max_steps"
        )


def _checked(draft: PlanDraft, earlier: Collection[str], max_steps: int) -> Plan:
    check_number(len(draft.steps), max_steps)
    with plan_errors():
        if not draft.steps:
            return Plan(steps=(), answer=(draft.answer or "").strip(), ask=draft.ask)
        return Plan(steps=tuple(drafted_step(step, earlier) for step in draft.steps), open=draft.open)
