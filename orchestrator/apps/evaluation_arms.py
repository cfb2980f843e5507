"""The arms of an evaluation: all tools, the provider's search, the best k tools, or the supervisor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, cast, get_args
from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, ProviderToolSearchMiddleware, wrap_model_call
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, ConfigDict

from callsheet.agents import Call, ModelError, ToolRegistry, Usage
from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.models.chat_models import answered, with_ids, with_written_calls
from callsheet.agents.safety.arguments import fit_of
from callsheet.agents.servers.in_process import InProcess
from callsheet.agents.work.equipment import calls_of
from callsheet.graphs import Loaded, SettingsError, Tool
from callsheet.orchestrator.run.settings import Planning, Settings
from callsheet.orchestrator.supervisor import create_supervisor
from callsheet.retrievers import AgentGraphRetriever

ALL, SEARCH, RULES = "all", "search", "rules"
DEFAULT_ARMS = ("k5", "k10", "none", "adaptive")
RECORDED = "The call was recorded."
"""The result of every recorded call."""
_MODES: tuple[str, ...] = get_args(Planning)
_SEARCHING = ("anthropic-chat", "openai-chat")
_FOUND = ("tool_search_tool_result", "tool_search_output")
_MOST_BOUND = 10_000
_MAX_TURNS = 8
_PROMPT = "Call the tools that the request needs, and nothing else. When it is done, answer in one sentence."


class Attempt(BaseModel):
    """What a model did with one request in one arm.

    Attributes:
        offered: Ids of the tools that the model was shown.
        answer: Its last text.
        steps: Texts of the planned steps; the request in an arm without a plan.
        stopped: Why it ended before the model was done: a limit, or a question to the user; empty otherwise.
        failure: The error of the model; such an attempt is not stored.
        unmet: What a caller's own check of the end state did not find.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    offered: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    answer: str = ""
    usage: Usage = Usage()
    steps: tuple[str, ...] = ()
    stopped: str = ""
    failure: str = ""
    unmet: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to give a model tools: ``all``, ``k10``, ``adaptive`` ...

    Attributes:
        attempt: What the model does with a request; an error of the model is in the attempt.
    """

    name: str
    attempt: Callable[[str], Awaitable[Attempt]]


def recorded(loaded: Loaded) -> Loaded:
    """The same catalog and policy, with tools that validate their arguments and do nothing: no server is called."""
    connections = {
        agent.id: InProcess({tool.name: _recorded_tool(tool) for tool in agent.tools})
        for agent in loaded.catalog.agents
    }
    return replace(loaded, connections=connections, digests={}, live={}, resources={})


def _recorded_tool(tool: Tool) -> BaseTool:
    async def record(**args: Any) -> str:
        if misfit := fit_of(tool.input_schema, args).misfit:
            raise Fault("refused", misfit, effect="none")
        return RECORDED

    schema = dict(tool.input_schema) or {"type": "object", "properties": {}}
    return StructuredTool(
        name=tool.name, description=tool.description or tool.name, args_schema=schema, coroutine=record
    )


@dataclass(frozen=True, slots=True)
class Arms:
    """Makes arms over one catalog and one model.

    Attributes:
        loaded: The catalog, whose tools are called without approval; see ``recorded``.
        retriever: Over the same catalog.
        model: The chat model of every arm.
        tools: Maximum tools per worker in the arms of the supervisor.
        weak_model: As in ``Settings``, for the arms of the supervisor.
        records: Whether calls are only recorded, so that a model that only repeats its calls is done.
    """

    loaded: Loaded
    retriever: AgentGraphRetriever
    model: BaseChatModel
    tools: int = 10
    weak_model: bool = False
    records: bool = True

    def named(self, name: str) -> Arm:
        """An arm by name.

        Raises:
            SettingsError: There is no such arm; the message lists them. Or the model's provider has no tool search.
        """
        registry, every = ToolRegistry.from_catalog(self.loaded), [*self.retriever.catalog.tools]
        if name in (*_MODES, RULES):
            return Arm(name, partial(_supervised, self._supervisor(name, registry)))
        if name == SEARCH and self.model._llm_type not in _SEARCHING:
            raise SettingsError("the arm 'search' needs a model whose provider searches tools: anthropic or openai")
        if name in (ALL, SEARCH):
            return Arm(name, partial(self._looped, registry, lambda request: every, searches=name == SEARCH))
        if name[:1] == "k" and name[1:].isdecimal() and 0 < int(name[1:]) <= _MOST_BOUND:
            return Arm(name, partial(self._looped, registry, lambda request: self._best(request, int(name[1:]))))
        raise SettingsError(
            f"there is no arm {name!r}: there are {ALL} (all tools bound), {SEARCH} (found by the provider's search), "
            f"k5, k10, ... (the best 5, 10, ... tools bound), {', '.join(_MODES)} (the supervisor in this planning "
            f"mode), and {RULES} (the supervisor without a model)"
        )

    def _best(self, request: str, k: int) -> list[str]:
        return [tool.id for tool in self.retriever.select(request, agents=max(5, k), tools=k).tools][:k]

    def _supervisor(self, name: str, registry: ToolRegistry) -> Any:
        workflow = create_supervisor(
            self.loaded,
            model=None if name == RULES else self.model,
            retriever=self.retriever,
            registry=registry,
            settings=Settings(
                planning="auto" if name == RULES else name,
                tools=self.tools,
                approval="never",
                learn=False,
                weak_model=self.weak_model,
            ),
        )
        return workflow.compile(checkpointer=InMemorySaver())

    async def _looped(
        self, registry: ToolRegistry, select: Callable[[str], Sequence[str]], request: str, *, searches: bool = False
    ) -> Attempt:
        """An agent loop without a supervisor, over bound tools, or over all tools, which the provider searches."""
        began, run, failure = monotonic(), uuid4().hex, ""
        offered = await asyncio.to_thread(select, request)
        tools = registry.bind(offered, run)
        middleware: list[Any] = [
            ModelCallLimitMiddleware(run_limit=_MAX_TURNS),
            *([ProviderToolSearchMiddleware(searchable_tools=[*tools])] if searches else []),
            _reader([*tools], records=self.records),
        ]
        agent: Any = create_agent(self.model, [*tools.values()], system_prompt=_PROMPT, middleware=middleware)
        messages: list[AnyMessage] = [HumanMessage(request)]
        try:
            async for state in agent.astream({"messages": messages}, stream_mode="values"):
                messages = state["messages"]
        except ModelError as error:
            failure = str(error)
        finally:
            await registry.close_run(run)
        answers = [message for message in messages if isinstance(message, AIMessage)]
        stopped = len(answers) > _MAX_TURNS
        if searches:
            offered = [tools[name].id for name in _found(answers) if name in tools]
        return Attempt(
            offered=tuple(dict.fromkeys(offered)),
            calls=calls_of(messages, tools),
            answer=answers[-1].text if answers and not stopped else "",
            usage=usage_of(answers[:_MAX_TURNS], monotonic() - began),
            steps=(request,),
            stopped=f"the limit of {_MAX_TURNS} model calls" if stopped else "",
            failure=failure,
        )


def _reader(names: Sequence[str], *, records: bool) -> Any:
    """Model calls with the time limit and the error of the other arms, and with calls that were written as text."""

    @wrap_model_call
    async def read(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        (message,) = (await answered(handler(request))).result
        message = cast("AIMessage", with_written_calls(with_ids(message), names, request.messages))
        made = [(c["name"], c["args"]) for m in request.messages if isinstance(m, AIMessage) for c in m.tool_calls]
        if records and all((call["name"], call["args"]) in made for call in message.tool_calls):
            return message.model_copy(update={"tool_calls": []})
        return message

    return read


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


async def _supervised(app: Any, request: str) -> Attempt:
    """A run of the supervisor."""
    thread, errors, began = uuid4().hex, _ModelErrors(), monotonic()
    config = {"configurable": {"thread_id": thread}, "callbacks": [errors]}
    try:
        state = await app.ainvoke({"messages": [HumanMessage(request)]}, config)
    finally:
        await app.checkpointer.adelete_thread(thread)
    results = state.get("results", {}).values()
    picked = [agent for one in state.get("selections", {}).values() for agent in one["agents"]]
    selected = [tool["id"] for agent in picked for tool in agent["tools"]]
    held = [tool for result in results for tool in result["tools"]]  # with those that it asked for
    asked = [str(one.value.get("type", "question")) for one in state.get("__interrupt__", ())]
    stopped = [*(f"it asked the user: {kind}" for kind in asked), *(r["error"] for r in results if r["error"])]
    usage = Usage.from_report(state.get("usage", {}))
    return Attempt(
        offered=tuple(dict.fromkeys([*selected, *held])),
        calls=tuple(Call(**call) for result in results for call in result["calls"]),
        answer=state["messages"][-1].text,
        usage=usage.model_copy(update={"seconds": round(monotonic() - began, 3)}),
        steps=tuple(step["text"] for step in state.get("plan", {}).get("steps", ())),
        stopped="; ".join(stopped),
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
