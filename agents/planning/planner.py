"""Makes a plan for a request; defines the object that plans, works and answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BaseModel, BeforeValidator, Field

from callsheet.agents.calls.plan import Mode, Plan, Question, Step, StepResult, plan_errors, source_of
from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.models.chat_models import ModelError, UnreachableModelError
from callsheet.agents.models.prompts import PLANNER
from callsheet.agents.models.structured import ask_for_object
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.work.context import Brief, synthesize
from callsheet.agents.work.equipment import Equipment
from callsheet.agents.work.worker_agent import carry_out
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.catalog.names import NamedTools, named_tools
from callsheet.graphs.errors import CallsheetError, PlanError


def _reference(value: object) -> Any:
    """Writes ``{"$from": "1", "path": "items"}`` as ``1.items``, and a number as a string."""
    if isinstance(value, dict) and "$from" in value:
        parts = (str(value["$from"]), str(value.get("path") or ""))
        return ".".join(part for part in parts if part)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _question(value: object) -> Any:
    """Makes a question of a bare string, and None of an empty one: some models write it so."""
    if isinstance(value, str):
        return {"question": value} if value.strip() else None
    return value


Reference = Annotated[str, BeforeValidator(_reference)]
OptionalQuestion = Annotated[Question | None, BeforeValidator(_question)]


class PlannedStep(BaseModel):
    """One step of a plan."""

    id: Reference = Field(description='"1", "2", ...')
    text: str = Field(
        default="",
        description="What is done, as a tool's description would say. If apart or for_each: all that is to be done, "
        "with every name, number and path",
    )
    tools: list[str] = Field(default_factory=list, description="agent/tool")
    depends_on: list[Reference] = Field(default_factory=list, description="Ids of steps")
    apart: bool = Field(default=False, description="Whether it has a worker of its own")
    for_each: Annotated[str | None, BeforeValidator(_reference)] = Field(
        default=None, description="Id of a step whose result is a list"
    )


class PlanDraft(BaseModel):
    """The steps that a request needs."""

    steps: list[PlannedStep] = Field(default_factory=list)
    open: bool = Field(default=False, description="Whether further steps are to be planned once results are known")
    answer: str | None = Field(default=None, description="In place of steps")
    ask: OptionalQuestion = Field(default=None, description="In place of steps: a question to the user")
    cannot: str | None = Field(default=None, description="In place of steps: why nothing can be done")


class PlanRevision(BaseModel):
    """What changes in a plan after the results so far."""

    done: bool = Field(default=False, description="True if the results answer the request: no other step is run")
    steps: list[PlannedStep] = Field(
        default_factory=list, description="New steps; or, under its id, another text for a step that is not done"
    )
    open: bool | None = Field(
        default=None, description="True if further steps are to be planned after these, False if not; null: as before"
    )
    drop: list[Reference] = Field(
        default_factory=list, description="Ids of steps that have not run and are not needed any more"
    )
    ask: OptionalQuestion = Field(
        default=None, description="One question to the user, only if nothing can be done without the answer"
    )
    reason: str = Field(default="", description="Why, in one sentence")


S = TypeVar("S", bound=BaseModel)
T = TypeVar("T")


class TooManyStepsError(PlanError):
    """Raised if a request needs more steps than a plan may have."""


async def decompose(
    request: str,
    model: BaseChatModel,
    catalog: Catalog,
    *,
    prompt: str = PLANNER,
    context: str = "",
    earlier: Collection[str] = (),
    max_steps: int = 12,
    lookup: Sequence[BaseTool] = (),
) -> Plan:
    """Asks a model for a plan of a request: the things to be done, each with the names of the tools for it.

    The model may repair an invalid plan once; a name that no tool has makes a plan invalid too. After that, unknown
    names stay in the plan, where its worker sees them; any other invalid plan becomes one step, and the plan's note
    says why. A request that needs too many steps does not become one step, which would do only a part of it. In place
    of steps, a model may answer directly, ask the user a question, or say that it cannot do the request.

    Args:
        request: The user's message, unchanged.
        model: The planner's model.
        catalog: The agents that the user may see.
        prompt: The system prompt, which ends with the roster.
        context: The text that the model gets as the user's message, if it is more than the request.
        earlier: Ids of results of earlier requests, on which steps may depend too.
        max_steps: Maximum number of steps.
        lookup: Tools by which the model may look up names that the roster does not hold.

    Raises:
        TooManyStepsError: The request needs more than ``max_steps`` steps.

    Examples:
        >>> plan = await decompose("Convert 3 miles to km and mail it to Ann", model, catalog)
        >>> plan.steps[0].tools
        ('units/convert',)
    """
    corrected = False

    def read(draft: PlanDraft) -> Plan:
        nonlocal corrected
        check_number(len(draft.steps), max_steps)
        with plan_errors():
            if not draft.steps:
                answer = (draft.answer or "").strip()
                cannot = (draft.cannot or "").strip()
                return Plan(steps=(), answer=answer, ask=draft.ask, cannot=cannot)
            named = named_tools(catalog, (name for step in draft.steps for name in step.tools))
            if not corrected and (wrong := name_problems(named, catalog)):
                corrected = True
                raise PlanError(wrong)
            steps = tuple(drafted_step(step, catalog, request, earlier) for step in draft.steps)
            return Plan(steps=steps, open=draft.open)

    plan, error, usage = await read_draft(model, PlanDraft, prompt, context or request, read, lookup)
    if plan is not None:
        return plan.model_copy(update={"note": f"repaired: {error}" if error else "", "usage": usage})
    if isinstance(error, TooManyStepsError):
        raise error
    if isinstance(error, UnreachableModelError):
        # Each step would say the same again.
        raise PlanError(str(error)) from error
    unusable = "the model's plan could not be used: " if isinstance(error, PlanError) else ""
    return single(request, f"taken as a single step: {unusable}{error}", usage=usage)


def name_problems(named: NamedTools, catalog: Catalog) -> str:
    """Returns what is wrong with the names in a plan, and which names may be meant; empty if all are right."""
    wrong = [f"{agent} is an agent: name its tools ({_tools_of(catalog, agent)})" for agent in named.agents]
    for name, near in named.unknown.items():
        hint = f" (did you mean {' or '.join(near)}?)" if near else ""
        wrong.append(f"there is no tool {name!r}{hint}")
    return "; ".join(wrong)


_LISTED = 60
"""Maximum number of tools of an agent in an error."""


def _tools_of(catalog: Catalog, agent: str) -> str:
    names = [tool.name for tool in catalog.agent(agent).tools]
    if len(names) <= _LISTED:
        return ", ".join(names)
    return ", ".join([*names[:_LISTED], f"and {len(names) - _LISTED} more"])


async def read_draft(
    model: BaseChatModel,
    schema: type[S],
    prompt: str,
    message: str,
    read: Callable[[S], T],
    lookup: Sequence[BaseTool] = (),
) -> tuple[T | None, CallsheetError | None, Usage]:
    """Asks a model for a draft and parses it by ``read``; after a ``PlanError``, asks once more.

    Returns the parsed draft or None, the last error, and the cost.
    """
    messages: list[AnyMessage] = [SystemMessage(prompt), HumanMessage(message)]
    spent = Usage()
    problem: PlanError | None = None
    for _ in ("first", "repair"):
        try:
            draft, usage = await ask_for_object(model, schema, messages, beside=lookup)
        except ModelError as error:
            return None, problem if isinstance(problem, TooManyStepsError) else error, spent + error.usage
        spent += usage
        try:
            return read(draft), problem, spent
        except PlanError as error:
            problem = problem if isinstance(problem, TooManyStepsError) else error
            messages = [*messages, HumanMessage(f"That cannot be used: {error}. Give a corrected one.")]
    return None, problem, spent


def single(
    request: str, note: str = "", *, mode: Mode = "auto", tools: Sequence[str] = (), usage: Usage | None = None
) -> Plan:
    """Makes a plan of one step, whose text is the request itself."""
    step = Step(id="1", text=request.strip(), tools=tuple(tools))
    return Plan(steps=(step,), note=note, mode=mode, usage=usage or Usage())


def drafted_step(
    draft: PlannedStep, catalog: Catalog, request: str, earlier: Collection[str] = (), known: Collection[str] = ()
) -> Step:
    """Makes a step from a model's draft: it resolves the ids of tools, and separates references to earlier requests.

    Unknown names stay as they are. A step without a text gets the text of the request.
    """
    needs = dict.fromkeys(draft.depends_on)
    waits = [name for name in needs if name and name not in earlier]
    if draft.for_each:
        # The step whose items it is done for is one that it waits for, whether the model says so or not.
        source = source_of(draft.for_each, [*needs, *known])
        waits += [source] if source and source not in earlier else []
    named = named_tools(catalog, draft.tools)
    return Step(
        id=draft.id,
        text=draft.text.strip() or request.strip(),
        depends_on=tuple(dict.fromkeys(waits)),
        for_each=draft.for_each or "",
        tools=(*named.ids, *named.agents, *named.unknown),
        apart=draft.apart,
        uses=tuple(name for name in needs if name in earlier),
    )


def check_number(steps: int, most: int) -> None:
    """Raises a ``TooManyStepsError`` if a plan has more than ``most`` steps."""
    if steps > most:
        raise TooManyStepsError(
            f"the request needs {steps} steps, at most {most} are allowed: ask for less at once, or raise max_steps"
        )


@dataclass(frozen=True, slots=True)
class PlanTask:
    """A request to plan, with what is known about it.

    Attributes:
        request: The user's message, unchanged.
        mode: ``auto`` or ``none``, as in ``Settings.planning``.
        catalog: The agents that the user may see.
        find: The ids of the tools for a text, best first.
        context: Makes the text that the planner's model gets as the user's message: the request with further
            information.
        prompt: Makes the system prompt, which ends with the roster.
        earlier: Ids of the results of all earlier requests; ``last`` are the results of the last one.
        tools: Maximum tools per worker.
        lookup: Tools by which a planner's model may look up names that the roster does not hold.
    """

    request: str
    mode: str
    catalog: Catalog
    registry: ToolRegistry
    find: Callable[[str], Sequence[str]]
    context: Callable[[], Awaitable[str]]
    prompt: Callable[[], str]
    earlier: Sequence[str] = ()
    last: Sequence[StepResult] = ()
    tools: int = 15
    max_steps: int = 12
    lookup: Sequence[BaseTool] = ()


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """The results of a request's steps, in plan order, and the conversation before it."""

    request: str
    results: Sequence[StepResult]
    prompt: str
    conversation: Sequence[BaseMessage] = ()


class Reasoner(Protocol):
    """The protocol of what plans a request, works on its steps, and answers from their results."""

    @property
    def prose(self) -> bool:
        """Returns whether results are texts for people, so that the result of a single step is the answer."""
        ...

    async def plan(self, task: PlanTask) -> Plan:
        """Plans a request; raises a PlanError if it cannot be planned."""
        ...

    async def work(self, brief: Brief, equipment: Equipment, app: Runnable[Any, Any]) -> StepResult:
        """Does a step; raises a ModelError if there is no result, a ConcurrentRunError if another run does the step."""
        ...

    async def answer(self, task: AnswerTask) -> AIMessage:
        """Answers a request from the results of its steps."""
        ...


@dataclass(frozen=True, slots=True)
class ModelReasoner:
    """Plans, works and answers with a chat model."""

    model: BaseChatModel
    prose = True

    async def plan(self, task: PlanTask) -> Plan:
        """Asks the model for a plan; makes one step if the settings say so, or if the catalog is one small agent.

        Such a step uses the results of the last request, since no plan says which ones it needs.
        """
        last = [result.id for result in task.last]
        if task.mode == "none":
            return _with_earlier(single(task.request, mode="none"), last)
        if len(task.catalog.agents) == 1 and len(task.catalog.tools) <= task.tools:
            return _with_earlier(single(task.request, tools=[*task.catalog.tools]), last)
        return await decompose(
            task.request,
            self.model,
            task.catalog,
            prompt=task.prompt(),
            context=await task.context(),
            earlier=task.earlier,
            max_steps=task.max_steps,
            lookup=task.lookup,
        )

    async def work(self, brief: Brief, equipment: Equipment, app: Runnable[Any, Any]) -> StepResult:
        """Does the step with the worker."""
        return await carry_out(brief, replace(equipment, model=self.model), app)

    async def answer(self, task: AnswerTask) -> AIMessage:
        """Asks the model for the answer, and adds a line for each step that was not done."""
        return await synthesize(
            task.request, task.results, self.model, prompt=task.prompt, conversation=task.conversation
        )


def _with_earlier(plan: Plan, results: Sequence[str]) -> Plan:
    """Adds to a plan of one step that it uses these results of earlier requests."""
    step = plan.steps[0].model_copy(update={"uses": tuple(results)})
    return plan.model_copy(update={"steps": (step,)})
