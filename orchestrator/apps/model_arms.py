"""The arms of an evaluation with a chat model: different ways of giving tools to the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, get_args
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Interrupt
from pydantic import BaseModel, ConfigDict

from callsheet.agents import Brief, Call, Equipment, ModelError, StepResult, ToolRegistry, Usage
from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Fault
from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.safety.arguments import fit_of
from callsheet.agents.servers.in_process import InProcess
from callsheet.agents.work.worker_agent import carry_out
from callsheet.graphs import Loaded, SettingsError, Tool
from callsheet.orchestrator.run.settings import Planning, Settings
from callsheet.orchestrator.state import ChatInput, ChatOutput, State, read_results
from callsheet.orchestrator.step_selection import StepSelection
from callsheet.orchestrator.supervisor import create_supervisor
from callsheet.retrievers import AgentGraphRetriever

ALL = "all"
K10 = "k10"
MODES: tuple[str, ...] = tuple(reversed(get_args(Planning)))
ARMS = (ALL, K10, *MODES)
DEFAULT_ARMS = (K10, *MODES)
"""The arms that run by default: all but ``all``, whose cost grows with the catalog."""
_BEST = 10
"""Number of tools that a worker gets in the arm ``k10``."""
_MAX_TURNS = 7
"""Maximum number of turns with tools in an attempt without a supervisor."""
_PROMPT = "Call the tools that the request needs, and nothing else. When it is done, answer in one sentence."


App = CompiledStateGraph[State, Settings, ChatInput, ChatOutput]
Record = Mapping[str, Any]
"""The state of a run, or a part of it, as JSON values."""


class Attempt(BaseModel):
    """The attempt of a model at one request in one arm.

    Attributes:
        offered: Ids of the tools that the model could see.
        calls: The calls that it made, in order.
        answer: Its last words.
        usage: What the attempt cost.
        steps: Texts of the planned steps; the request in an arm without a plan.
        stopped: The reason why the request was not done: a limit, or a question to the user.
        failure: The error of the model; such an attempt is not stored.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    offered: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    answer: str = ""
    usage: Usage = Usage()
    steps: tuple[str, ...] = ()
    stopped: str = ""
    failure: str = ""


Arm = Callable[[str], Awaitable[Attempt]]
"""A way of giving tools to a model: a function that makes an attempt at a request."""


def record_only(loaded: Loaded) -> Loaded:
    """Returns the same catalog and policy with tools that validate their arguments and do nothing else.

    No server is called.
    """
    connections = {}
    for agent in loaded.catalog.agents:
        connections[agent.id] = InProcess({tool.name: _recording_tool(tool) for tool in agent.tools})
    # Under a name of its own: a call that an attempt leaves open is no open call of the catalog.
    label = f"recorded:{loaded.label}"
    return replace(loaded, label=label, connections=connections, digests={}, live={}, resources={})


def _recording_tool(tool: Tool) -> StructuredTool:
    """Returns a tool of the same name, description and schema, whose result says that the call was recorded."""

    async def record(**args: Any) -> str:
        misfit = fit_of(tool.input_schema, args).misfit
        if misfit:
            raise Fault("refused", misfit.reason, effect="none")
        return "The call was recorded."

    return StructuredTool(
        name=tool.name,
        description=tool.description or tool.name,
        args_schema=dict(tool.input_schema) or {"type": "object", "properties": {}},
        coroutine=record,
    )


@dataclass(frozen=True, slots=True)
class Arms:
    """Makes the arms over one catalog and one model; tools are called without approval (see ``record_only``).

    ``tools`` is the maximum number of tools per worker in the arms of the supervisor; None: as in ``Settings``.
    """

    loaded: Loaded
    retriever: AgentGraphRetriever
    model: BaseChatModel
    tools: int | None = None

    def named(self, name: str) -> Arm:
        """Returns the arm with this name.

        Raises:
            SettingsError: There is no arm of this name; the message lists them.
        """
        # A server that stays warm remembers one request, which must not help or hinder the next.
        registry = ToolRegistry.from_catalog(self.loaded, limits=Limits(warm=0))
        if name == ALL:
            return partial(self._attempt, registry, None)
        if name == K10:
            return partial(self._attempt, registry, _BEST)
        if name in MODES:
            return partial(_supervised_attempt, self._supervisor(name, registry))
        raise SettingsError(
            f"there is no arm {name!r}: there are {ALL} (all tools for one worker), {K10} (the best {_BEST}), "
            f"{' and '.join(MODES)} (the supervisor in this planning mode)"
        )

    def _supervisor(self, planning: str, registry: ToolRegistry) -> App:
        most = {} if self.tools is None else {"tools": self.tools}
        settings = Settings.model_validate(
            {
                "planning": planning,
                "approval": "never",
                "allow": tuple(self.loaded.catalog.tools),
                "learn": False,
                **most,
            }
        )
        workflow = create_supervisor(
            self.loaded, model=self.model, retriever=self.retriever, registry=registry, settings=settings
        )
        return workflow.compile()

    async def _attempt(self, registry: ToolRegistry, k: int | None, request: str) -> Attempt:
        """Lets a worker without a supervisor attempt a request with the best k tools; None: with all of them."""
        began = monotonic()
        if k is None:
            offered = tuple(self.retriever.catalog.tools)
        else:
            selection = await self.retriever.aselect(request, tools=k)
            offered = tuple(tool.id for tool in selection.tools)
        run = uuid4().hex
        equipment = Equipment(
            tools=registry.bind(offered, run),
            model=self.model,
            prompt=_PROMPT,
            own_tools=False,
            max_turns=_MAX_TURNS,
        )
        result = StepResult(id="", text=request)
        failure = ""
        try:
            result = await carry_out(Brief(text=request), equipment)
        except ModelError as error:
            failure = str(error)
        finally:
            await registry.close_run(run)
        return Attempt(
            offered=offered,
            calls=result.calls,
            answer=result.result,
            usage=usage_of(equipment.replies, monotonic() - began),
            steps=(request,),
            stopped=result.error,
            failure=failure,
        )


async def _supervised_attempt(app: App, request: str) -> Attempt:
    """Lets the supervisor attempt a request in a thread of its own."""
    began = monotonic()
    errors = _ModelErrors()
    thread = app.copy({"checkpointer": InMemorySaver()})
    config: RunnableConfig = {"configurable": {"thread_id": "1"}, "callbacks": [errors]}
    state = await thread.ainvoke({"messages": [HumanMessage(request)]}, config)
    results = list(read_results(state.get("results", {})).values())
    usage = Usage(**state.get("usage", {})).model_copy(update={"seconds": round(monotonic() - began, 3)})
    return Attempt(
        offered=_offered(state.get("selections", {}).values(), results),
        calls=tuple(call for result in results for call in result.calls),
        answer=state["messages"][-1].text,
        usage=usage,
        steps=tuple(step["text"] for step in state.get("plan", {}).get("steps", ())),
        stopped=_stopped(state.get("__interrupt__", ()), results),
        failure="; ".join(dict.fromkeys(errors.messages)),
    )


def _offered(selections: Iterable[Record], results: Sequence[StepResult]) -> tuple[str, ...]:
    """Returns the ids of all tools that workers had: those selected, and those that they asked for."""
    ids: dict[str, None] = {}
    for selection in selections:
        ids.update(dict.fromkeys(StepSelection.from_dict(selection).tool_ids))
    for result in results:
        ids.update(dict.fromkeys(result.tools))
    return tuple(ids)


def _stopped(interrupts: Iterable[Interrupt], results: Sequence[StepResult]) -> str:
    """Returns why a run was not done, or an empty text: it waits for the user, or steps failed."""
    reasons = [f"it asked the user: {interrupt.value.get('type', 'question')}" for interrupt in interrupts]
    reasons += [result.error for result in results if result.error]
    return "; ".join(reasons)


class _ModelErrors(AsyncCallbackHandler):
    """Collects errors of models, after which the supervisor may go on; an answer that was cut is the model's own."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        if type(error).__name__ != "LengthFinishReasonError":  # of openai, which may not be installed
            self.messages.append(f"{type(error).__name__}: {error}")
