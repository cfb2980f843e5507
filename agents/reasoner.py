"""What plans a request, works on its steps and answers: by default a chat model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from callsheet.agents.calls.plan import Mode, Plan, StepResult
from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.planning.planner import decompose, looked_up, single
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.work.context import Brief, synthesize
from callsheet.agents.work.equipment import Equipment
from callsheet.agents.work.worker_agent import carry_out
from callsheet.graphs.catalog.model import Catalog


@dataclass(frozen=True, slots=True)
class PlanTask:
    """A request to plan, and what is known about it.

    Attributes:
        request: The request, not empty and understandable without the conversation.
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
