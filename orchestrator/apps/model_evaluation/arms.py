"""The arms of an evaluation: all tools, the provider's search, the best k tools, or the supervisor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol, get_args
from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, ProviderToolSearchMiddleware, wrap_model_call
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from callsheet.agents import BoundTool, Call, ModelError, ToolRegistry, Usage
from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.models.chat_models import answered
from callsheet.agents.models.model_output import written_calls
from callsheet.agents.work.worker_conversation import calls_of
from callsheet.graphs import Loaded, SettingsError
from callsheet.orchestrator.apps.model_evaluation.attempts import Attempt
from callsheet.orchestrator.run.settings import Planning, Settings
from callsheet.orchestrator.supervisor import create_supervisor
from callsheet.retrievers import AgentGraphRetriever

ALL, SEARCH, RULES = "all", "search", "rules"
DEFAULT_ARMS = ("k5", "k10", "none", "adaptive")
_MODES: tuple[str, ...] = get_args(Planning)
_SEARCHING = ("anthropic-chat", "openai-chat")
_FOUND = ("tool_search_tool_result", "tool_search_output")
_MOST_BOUND = 10_000
_MAX_TURNS = 8
_PROMPT = "Call the tools that the request needs, and nothing else. When it is done, answer in one sentence."


class Arm(Protocol):
    """One way to give a model tools: ``all``, ``k10``, ``adaptive`` ..."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    async def attempt(self, request: str) -> Attempt:
        """What the model does with a request; an error of the model is in the attempt."""
        ...


@dataclass(frozen=True, slots=True)
class Arms:
    """Makes arms over one catalog and one model.

    Attributes:
        loaded: The catalog, whose tools are called without approval; see ``recorded``.
        retriever: Over the same catalog.
        model: The chat model of every arm.
        tools: Maximum tools per worker in the arms of the supervisor.
        weak_model: As in ``Settings``, for the arms of the supervisor.
        records: Whether calls are only recorded, so that a call that is made again tells nothing new.
    """

    loaded: Loaded
    retriever: AgentGraphRetriever
    model: BaseChatModel
    tools: int = 10
    weak_model: bool = False
    records: bool = False

    def named(self, name: str) -> Arm:
        """An arm by name.

        Raises:
            SettingsError: There is no such arm; the message lists them. Or the model's provider has no tool search.
        """
        catalog, registry = self.retriever.catalog, ToolRegistry.from_catalog(self.loaded)
        if name in _MODES:
            return _Supervised(name, self._supervisor(name, registry, self.model))
        if name == RULES:
            return _Supervised(name, self._supervisor("auto", registry, None))
        if name == ALL:
            return _Bound(name, self.model, registry, lambda request: [*catalog.tools], self.records)
        if name == SEARCH:
            if self.model._llm_type not in _SEARCHING:
                raise SettingsError("the arm 'search' needs a model whose provider searches tools: anthropic or openai")
            return _Searched(name, self.model, registry, [*catalog.tools])
        if name[:1] == "k" and name[1:].isdecimal() and 0 < int(name[1:]) <= _MOST_BOUND:
            return _Bound(name, self.model, registry, lambda request: self._best(request, int(name[1:])), self.records)
        raise SettingsError(
            f"there is no arm {name!r}: there are {ALL} (all tools bound), {SEARCH} (found by the provider's search), "
            f"k5, k10, ... (the best 5, 10, ... tools bound), {', '.join(_MODES)} (the supervisor in this planning "
            f"mode), and {RULES} (the supervisor without a model)"
        )

    def _best(self, request: str, k: int) -> list[str]:
        return [tool.id for tool in self.retriever.select(request, agents=max(5, k), tools=k).tools][:k]

    def _supervisor(self, planning: str, registry: ToolRegistry, model: BaseChatModel | None) -> Any:
        workflow = create_supervisor(
            self.loaded,
            model=model,
            retriever=self.retriever,
            registry=registry,
            settings=Settings(
                planning=planning, tools=self.tools, approval="never", learn=False, weak_model=self.weak_model
            ),
        )
        return workflow.compile(checkpointer=InMemorySaver())


@dataclass(frozen=True, slots=True)
class _Bound:
    """An agent loop over bound tools, without a supervisor."""

    name: str
    model: BaseChatModel
    registry: ToolRegistry
    select: Callable[[str], Sequence[str]]
    records: bool

    async def attempt(self, request: str) -> Attempt:
        began, run = monotonic(), uuid4().hex
        offered = await asyncio.to_thread(self.select, request)
        tools = self.registry.bind(offered, run)
        messages: list[AnyMessage] = [SystemMessage(_PROMPT), HumanMessage(request)]
        failure = stopped = ""
        try:
            if not await self._looped(messages, tools):
                stopped = f"the limit of {_MAX_TURNS} model calls"
        except ModelError as error:
            failure = str(error)
        finally:
            await self.registry.close_run(run)
        return Attempt(
            offered=tuple(offered),
            calls=calls_of(messages, tools),
            answer=messages[-1].text if isinstance(messages[-1], AIMessage) else "",
            usage=usage_of(messages, monotonic() - began),
            stopped=stopped,
            failure=failure,
        )

    async def _looped(self, messages: list[AnyMessage], tools: Mapping[str, BoundTool]) -> bool:
        """Asks and calls until the model calls nothing more, or nothing new; whether it came to that."""
        bound, made = self.model.bind_tools([*tools.values()]), list[tuple[str, Any]]()
        for _ in range(_MAX_TURNS):
            said = _with_written_calls(await answered(bound.ainvoke(messages)), tools)
            messages.append(said)
            if not said.tool_calls:
                return True
            calls = [(call["name"], call["args"]) for call in said.tool_calls]
            if self.records and all(call in made for call in calls):
                messages[-1] = said.model_copy(update={"tool_calls": []})
                return True
            made += calls
            for call in said.tool_calls:
                if tool := tools.get(call["name"]):
                    messages.append(await tool.ainvoke({**call, "type": "tool_call"}))
                else:
                    text = f"there is no tool {call['name']!r}"
                    messages.append(ToolMessage(text, tool_call_id=call["id"] or "", status="error"))
        return False


def _with_written_calls(said: AIMessage, tools: Mapping[str, BoundTool]) -> AIMessage:
    """The message, with the calls that a small model wrote as text, as a worker of the supervisor reads them."""
    if said.tool_calls or not (written := written_calls(said.text, tools)):
        return said
    calls = [{**call, "id": uuid4().hex, "type": "tool_call"} for call in written]
    return said.model_copy(update={"tool_calls": calls})


@dataclass(frozen=True, slots=True)
class _Searched:
    """An agent loop over all tools, which the provider's own search finds."""

    name: str
    model: BaseChatModel
    registry: ToolRegistry
    offered: Sequence[str]

    async def attempt(self, request: str) -> Attempt:
        began, run, failure = monotonic(), uuid4().hex, ""
        tools = self.registry.bind(self.offered, run)
        middleware: list[Any] = [
            ModelCallLimitMiddleware(run_limit=_MAX_TURNS),
            ProviderToolSearchMiddleware(searchable_tools=[*tools]),
            _answered_in_time,
        ]
        agent: Any = create_agent(self.model, [*tools.values()], system_prompt=_PROMPT, middleware=middleware)
        messages: list[AnyMessage] = [HumanMessage(request)]
        try:
            async for state in agent.astream({"messages": messages}, stream_mode="values"):
                messages = state["messages"]
        except ModelError as error:
            failure = str(error)
        finally:
            await self.registry.close_run(run)
        said = [message for message in messages if isinstance(message, AIMessage)]
        found = [tools[name].id for name in _found(said) if name in tools]
        stopped = len(said) > _MAX_TURNS
        return Attempt(
            offered=tuple(dict.fromkeys(found)),
            calls=calls_of(messages, tools),
            answer=said[-1].text if said and not stopped else "",
            usage=usage_of(said[:_MAX_TURNS], monotonic() - began),
            steps=(request,),  # there is a step, also where nothing was found for it
            stopped=f"the limit of {_MAX_TURNS} model calls" if stopped else "",
            failure=failure,
        )


@wrap_model_call
async def _answered_in_time(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
    """Each model call has the time limit, and the error, of the other arms."""
    return await answered(handler(request))


def _found(value: Any, *, inside: bool = False) -> Iterator[str]:
    """Names of the tools that a provider's search returned, and of those that were called."""
    match value:
        case AIMessage():
            yield from _found(value.content)
            yield from (call["name"] for call in value.tool_calls)
        case list():
            for one in value:
                yield from _found(one, inside=inside)
        case {"tool_name": str(name)} | {"type": "function", "name": str(name)} if inside:
            yield name
        case dict():
            for one in value.values():
                yield from _found(one, inside=inside or value.get("type") in _FOUND)


@dataclass(frozen=True, slots=True)
class _Supervised:
    """The supervisor in one planning mode."""

    name: str
    app: Any

    async def attempt(self, request: str) -> Attempt:
        thread, errors, began = uuid4().hex, _ModelErrors(), monotonic()
        config = {"configurable": {"thread_id": thread}, "callbacks": [errors]}
        try:
            state = await self.app.ainvoke({"messages": [HumanMessage(request)]}, config)
        finally:
            await self.app.checkpointer.adelete_thread(thread)
        results = state.get("results", {}).values()
        picked = [agent for one in state.get("selections", {}).values() for agent in one["agents"]]
        selected = [tool["id"] for agent in picked for tool in agent["tools"]]
        held = [tool for result in results for tool in result["tools"]]  # with those that it asked for
        usage = {name: value for name, value in state.get("usage", {}).items() if name in Usage.model_fields}
        asked = [str(one.value.get("type", "question")) for one in state.get("__interrupt__", ())]
        return Attempt(
            offered=tuple(dict.fromkeys([*selected, *held])),
            calls=tuple(Call(**call) for result in results for call in result["calls"]),
            answer=state["messages"][-1].text,
            usage=Usage(**{**usage, "seconds": round(monotonic() - began, 3)}),
            steps=tuple(step["text"] for step in state.get("plan", {}).get("steps", ())),
            stopped="; ".join(
                [*(f"it asked the user: {kind}" for kind in asked), *(r["error"] for r in results if r["error"])]
            ),
            failure="; ".join(dict.fromkeys(errors.messages)),
        )


class _ModelErrors(AsyncCallbackHandler):
    """Remembers errors of models: the supervisor goes on without an answer after some of them.

    An answer that its token limit cut is the model's own failure, and the same when it is asked again.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        if type(error).__name__ != "LengthFinishReasonError":  # of openai, which may not be installed
            self.messages.append(f"{type(error).__name__}: {error}")
