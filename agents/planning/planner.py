"""Makes a plan for a request, understood from its conversation; and the object that plans, works and answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from callsheet.agents.calls.plan import Mode, Plan, Question, Step, StepResult, plan_errors, source_of
from callsheet.agents.calls.token_usage import Usage, usage_of
from callsheet.agents.models.chat_models import QUIET, ModelError, answered, structured
from callsheet.agents.models.prompts import CONDENSER, LOOKER, PLANNER
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.work.context import Brief, spoken, synthesize
from callsheet.agents.work.equipment import Equipment
from callsheet.agents.work.worker_agent import carry_out
from callsheet.graphs.catalog.errors import CallsheetError, PlanError
from callsheet.graphs.catalog.model import Catalog


def _reference(value: Any) -> Any:
    """``{"$from": "1", "path": "items"}`` as ``1.items``; a number as a string."""
    if isinstance(value, dict) and "$from" in value:
        return ".".join(filter(None, (str(value["$from"]), str(value.get("path") or ""))))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _question(value: Any) -> Any:
    """A bare string as a question; an empty one as None."""
    if isinstance(value, str):
        return {"question": value} if value.strip() else None
    return value


Reference = Annotated[str, BeforeValidator(_reference)]
Asked = Annotated[Question | None, BeforeValidator(_question)]


class PlannedStep(BaseModel):
    """One step of a plan."""

    id: Reference = Field(description='"1", "2", ...')
    text: str = Field(description="What to do, with every name, number, unit and path that it needs")
    depends_on: list[Reference] = Field(
        default_factory=list, description="Ids of the steps whose results this one needs"
    )
    tools: list[str] = Field(default_factory=list, description="What it needs: agent/tool, or an agent")
    for_each: Annotated[str | None, BeforeValidator(_reference)] = Field(
        default=None, description="Id of a step whose result is a list: this step is then done once for each item"
    )


class PlanDraft(BaseModel):
    """The steps that a request needs."""

    steps: list[PlannedStep] = Field(default_factory=list)
    open: bool = Field(
        default=False, description="True if further steps depend on results and can only be planned once they are known"
    )
    answer: str | None = Field(
        default=None, description="In place of steps: the answer to a greeting, or to a question on this conversation"
    )
    ask: Asked = Field(
        default=None, description="In place of steps: one question to the user, only if nothing can be planned without"
    )


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
    ask: Asked = Field(
        default=None, description="One question to the user, only if nothing can be done without the answer"
    )
    reason: str = Field(default="", description="Why, in one sentence")


_LONGER = 4_000
"""Characters by which a rewritten request may be longer than the user's message."""


class Contextual(BaseModel):
    """A request as it is understood without its conversation; ``note`` says why it is the user's message unchanged."""

    model_config = ConfigDict(frozen=True)

    request: str
    note: str = ""
    usage: Usage = Usage()


def recent(messages: Sequence[AnyMessage], max_tokens: int) -> list[BaseMessage]:
    """The latest turns of a conversation within a token budget (approximate): whole messages, of people and answers."""
    told = [m for m in spoken(messages) if isinstance(m, HumanMessage | AIMessage) and m.text.strip()]
    count = count_tokens_approximately
    return list(trim_messages(told, max_tokens=max_tokens, token_counter=count, strategy="last", start_on="human"))


async def self_contained(
    messages: Sequence[AnyMessage], model: BaseChatModel, *, prompt: str = CONDENSER, max_tokens: int = 2_000
) -> Contextual:
    """Rewrites the last message of a conversation as a request that is understandable without the others.

    The model is not called for a first request, and sees at most ``max_tokens`` tokens of earlier turns.
    """
    said = messages[-1].text
    before = recent(messages[:-1], max_tokens)
    if not before:
        return Contextual(request=said)
    turns = "\n".join(f"{'User' if isinstance(m, HumanMessage) else 'Assistant'}: {m.text}" for m in before)
    told = f"Conversation:\n{turns}\n\nLast message:\n{said}"
    usage = Usage()
    try:
        answer = await answered(model.ainvoke([SystemMessage(prompt), HumanMessage(told)], QUIET))
        text, usage = answer.text.strip(), usage_of([answer])
        if not text or answer.tool_calls or len(text) > len(said) + _LONGER:
            raise ModelError("the model did not return a usable request")
    except ModelError as error:
        return Contextual(request=said, note=f"the conversation was not taken into account: {error}", usage=usage)
    return Contextual(request=text, usage=usage)


async def looked_up(request: str, model: BaseChatModel, tool: BaseTool, most: int) -> tuple[str, Usage]:
    """What a model looks up with one tool, in at most ``most`` calls, and their cost; or why it failed."""
    messages: list[AnyMessage] = [SystemMessage(LOOKER.format(most=most)), HumanMessage(request)]
    told, spent = list[str](), Usage()

    async def asked() -> AIMessage:
        return await model.bind_tools([tool]).ainvoke(messages, QUIET)

    for _ in range(most):
        try:
            answer = await answered(asked())
        except ModelError as error:
            return "\n\n".join([*told, f"Nothing more was looked up: {error}"]), spent
        spent += usage_of([answer])
        if not (calls := [call for call in answer.tool_calls if call["name"] == tool.name][:most]):
            break
        messages.append(answer.model_copy(update={"tool_calls": calls}))
        for call in calls:
            messages.append(found := await tool.ainvoke({**call, "type": "tool_call"}))
            told.append(f"{tool.name}({json.dumps(call['args'])}):\n{found.text}")
    return "\n\n".join(told), spent


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
) -> Plan:
    """Splits a request into a directed acyclic graph of steps; most requests are a single one.

    The model may repair an invalid plan once. After that the request becomes one step, and the plan's note says why. A
    request that needs more than ``max_steps`` is refused by a TooManyStepsError, because one step would do only a part
    of it. In place of steps, a model may answer directly or ask the user a question.

    ``context`` is what the model should know besides the request: agents, surroundings, earlier results. ``earlier``
    are ids of results of earlier requests, on which steps may depend too.
    """

    def read(draft: PlanDraft) -> Plan:
        check_number(len(draft.steps), max_steps)
        with plan_errors():
            if not draft.steps:
                return Plan(steps=(), answer=(draft.answer or "").strip(), ask=draft.ask)
            return Plan(steps=tuple(drafted_step(step, earlier) for step in draft.steps), open=draft.open)

    told = "\n\n".join(filter(None, (request, context)))
    plan, error, usage = await read_draft(model, PlanDraft, prompt, told, read)
    if plan is not None:
        return plan.model_copy(update={"note": f"repaired: {error}" if error else "", "usage": usage})
    if isinstance(error, TooManyStepsError):
        raise error
    unusable = "the model's plan could not be used: " if isinstance(error, PlanError) else ""
    return single(request, f"taken as a single step: {unusable}{error}", usage=usage)


async def read_draft(
    model: BaseChatModel, schema: type[S], prompt: str, told: str, read: Callable[[S], T]
) -> tuple[T | None, CallsheetError | None, Usage]:
    """A draft as ``read`` has it, asked for again after its PlanError, or None; the last error; and the cost."""
    messages: list[AnyMessage] = [SystemMessage(prompt), HumanMessage(told)]
    spent, problem = Usage(), None
    for _ in ("first", "repair"):
        try:
            draft, usage = await structured(model, schema, messages)
        except ModelError as error:
            return None, problem if isinstance(problem, TooManyStepsError) else error, spent + error.usage
        spent += usage
        try:
            return read(draft), problem, spent
        except PlanError as error:
            problem = problem if isinstance(problem, TooManyStepsError) else error
            messages = [*messages, HumanMessage(f"That cannot be used: {error}. Give a corrected one.")]
    return None, problem, spent


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
    """Refuses a plan with too many steps by a TooManyStepsError."""
    if steps > most:
        raise TooManyStepsError(
            f"the request needs {steps} steps, at most {most} are allowed: ask for less at once, or raise max_steps"
        )


@dataclass(frozen=True, slots=True)
class PlanTask:
    """A request to plan, and what is known about it.

    Attributes:
        mode: ``auto``, or the mode that the settings ask for.
        catalog: The agents that the user may see.
        find: The ids of the tools for a text, best first.
        context: What a planner should know besides the request: agents, surroundings, earlier results.
        answers: Questions that the user answered, with the answers.
        earlier: Ids of the results of all earlier requests; ``last`` are the results of the last one.
        tools: Maximum tools per worker.
        graph: The tool that walks the knowledge graph, if a model may look at it, at most ``looks`` times.
    """

    request: str
    mode: str
    catalog: Catalog
    registry: ToolRegistry
    find: Callable[[str], Sequence[str]]
    context: Callable[[], Awaitable[str]]
    prompt: str
    answers: Sequence[str] = ()
    earlier: Sequence[str] = ()
    last: Sequence[StepResult] = ()
    tools: int = 12
    max_steps: int = 12
    graph: BaseTool | None = None
    looks: int = 0


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """The results of a request's steps, in plan order, and the conversation before it."""

    request: str
    results: Sequence[StepResult]
    prompt: str
    conversation: Sequence[BaseMessage] = ()


class Reasoner(Protocol):
    """Plans a request, works on its steps and answers from their results."""

    @property
    def prose(self) -> bool:
        """Whether its results are written for people, so that the result of a single step is the answer."""
        ...

    async def plan(self, task: PlanTask) -> Plan:
        """The steps of a request; raises a PlanError if it cannot be planned."""
        ...

    async def work(self, brief: Brief, equipment: Equipment, app: Runnable[Any, Any]) -> StepResult:
        """The result of a step; raises a ModelError if there is none, a ConcurrentRunError if another run does it."""
        ...

    async def answer(self, task: AnswerTask) -> AIMessage:
        """The answer to a request."""
        ...


@dataclass(frozen=True, slots=True)
class ModelReasoner:
    """A chat model that plans, works and answers."""

    model: BaseChatModel
    prose = True

    async def plan(self, task: PlanTask) -> Plan:
        """One step for a single small agent, or where the settings say so; otherwise the model's plan."""
        if task.mode == "none":
            return single(task.request)
        if task.mode == "auto" and len(task.catalog.agents) == 1 and len(task.catalog.tools) <= task.tools:
            return single(task.request, mode="adaptive")
        request, context = "\n".join([task.request, *task.answers]), await task.context()
        found, spent = "", Usage()
        if task.graph is not None:
            found, spent = await looked_up(f"{request}\n\n{context}", self.model, task.graph, task.looks)
        plan = await decompose(
            request,
            self.model,
            prompt=task.prompt,
            context="\n\n".join(filter(None, (context, found and f"From the knowledge graph:\n{found}"))),
            earlier=task.earlier,
            max_steps=task.max_steps,
        )
        mode: Mode = "once" if task.mode == "once" else "adaptive"
        return plan.model_copy(update={"mode": mode, "usage": spent + plan.usage})

    async def work(self, brief: Brief, equipment: Equipment, app: Runnable[Any, Any]) -> StepResult:
        """Lets the worker's loop do the step."""
        return await carry_out(brief, replace(equipment, model=self.model), app)

    async def answer(self, task: AnswerTask) -> AIMessage:
        """The model's answer, with a line for each step that was not done."""
        more: Any = {"prompt": task.prompt, "conversation": task.conversation}
        return await synthesize(task.request, task.results, self.model, **more)
