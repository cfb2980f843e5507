"""The right tools for every turn of somebody's own agent."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, ToolCallRequest
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from callsheet.agents import (
    ApprovalPolicy,
    BoundTool,
    Supervision,
    ToolRegistry,
    check_answerable,
    normalize,
    supervised,
    unstreamed,
)
from callsheet.graphs import CatalogSource, Policy, SettingsError, load
from callsheet.orchestrator.run.catalog_updates import Following
from callsheet.orchestrator.run.current_user import caller
from callsheet.orchestrator.run.sync_bridge import waited_for
from callsheet.orchestrator.step.step_selection import selected
from callsheet.retrievers import AgentGraphRetriever


class EquippedState(AgentState[Any]):
    """What the middleware remembers of a conversation.

    Attributes:
        callsheet_tools: Ids of the tools that the agent has, in the order in which they came.
        callsheet_asked: The last request that tools were picked for, in this call of the agent. Its text: a message
            may have no id.
        callsheet_run: Tells the sessions of this call of the agent from those of others.
    """

    callsheet_tools: NotRequired[Annotated[list[str], PrivateStateAttr]]
    callsheet_asked: NotRequired[Annotated[str | None, PrivateStateAttr]]
    callsheet_run: NotRequired[Annotated[str, PrivateStateAttr]]


class CallsheetTools(AgentMiddleware[EquippedState, Any]):
    """Gives each turn of a LangChain agent the tools that its request needs, out of any number.

    ``create_agent(model, middleware=[CallsheetTools("mcp.json")])``. Tools are picked once for each new message of the
    user and added behind those that the agent has: nothing is reordered or taken away within a conversation, so a
    provider's prompt cache stays warm. The agent's own tools stay as they are, before ours.

    Args:
        source: A catalog of any kind, or several; see ``callsheet.graphs.load``.
        agents: Maximum number of agents per request.
        tools: Maximum number of tools per request.
        most: Maximum number of tools in a conversation; after that, none are added.
        retriever: Selects agents and tools; by default a retriever over the same catalog.
        registry: Makes tools callable; by default a registry over the same catalog.
        yes: Starts the commands of an ``mcp.json`` without consent; see ``callsheet.graphs.load``.
        policy: Who may see and call which tools: a policy or its file; ``CALLSHEET_POLICY`` by default.
        approval: Which calls of our tools a person is asked about first: ``always`` all, ``risky`` those of tools that
            are not known to be harmless, ``never`` none. The first two need an agent with a checkpointer, and raise
            a ``SettingsError`` without one.

    Raises:
        CatalogError: The catalog cannot be read.
        TrustError: A command of the catalog has no consent, or its pins cannot be used.
        SettingsError: ``most`` is less than ``tools``.
    """

    state_schema = EquippedState

    def __init__(
        self,
        source: CatalogSource,
        *,
        agents: int = 5,
        tools: int = 10,
        most: int = 60,
        retriever: AgentGraphRetriever | None = None,
        registry: ToolRegistry | None = None,
        yes: bool = False,
        policy: Policy | str | Path | None = None,
        approval: ApprovalPolicy = "risky",
    ) -> None:
        super().__init__()
        if most < tools:
            raise SettingsError(f"most ({most}) must be at least tools ({tools})")
        loaded = load(source, yes=yes, policy=policy)
        self._retriever = retriever or AgentGraphRetriever.from_catalog(loaded)
        self._registry = registry or ToolRegistry.from_catalog(loaded)
        Following(self._retriever, self._registry)
        self._reach: dict[str, Any] = {"agents": agents, "tools": tools}
        self._most = most
        self._approval: ApprovalPolicy = approval
        self._own: set[str] = set()

    def before_agent(self, state: EquippedState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Makes sure that what is asked can be answered, and opens the sessions' scope."""
        check_answerable(self._registry, self._approval)
        return {"callsheet_run": uuid.uuid4().hex, "callsheet_asked": None}

    def before_model(self, state: EquippedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Picks tools for a request that none were picked for yet."""
        request = _last_request(state["messages"])
        if request is None or request.text == state.get("callsheet_asked"):
            return None
        held = state.get("callsheet_tools", [])
        seen = self._retriever.within(caller())
        selection = selected(seen, request.text, **self._reach)
        all_shown = len(seen.catalog.tools) <= self._reach["tools"]
        fitting = selection.tools if selection.verdict == "found" or all_shown else ()
        new = [tool.id for tool in fitting if tool.id not in held]
        return {"callsheet_tools": [*held, *new][: self._most], "callsheet_asked": request.text}

    async def abefore_model(self, state: EquippedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same, off the event loop."""
        return await asyncio.to_thread(self.before_model, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Shows the model the picked tools behind its own."""
        return self._normalized(handler(self._shown(request)), request.state)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Shows the model the picked tools behind its own."""
        return self._normalized(await handler(self._shown(request)), request.state)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Runs a picked tool, once a person has agreed where that is needed; the agent's own go their usual way."""

        async def send(approved: ToolCallRequest) -> ToolMessage | Command[Any]:
            return await asyncio.to_thread(handler, approved)

        called = self._called(request)
        if not isinstance(called.tool, BoundTool):
            return handler(called)
        return waited_for(supervised(called, called.tool, self._supervision(request.state), send))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Runs a picked tool, once a person has agreed where that is needed; the agent's own go their usual way."""
        called = self._called(request)
        if not isinstance(called.tool, BoundTool):
            return await handler(called)
        return await supervised(called, called.tool, self._supervision(request.state), handler)

    def after_agent(self, state: EquippedState, runtime: Runtime[Any]) -> None:
        """Ends the sessions."""
        self._registry.close(state.get("callsheet_run", ""))

    async def aafter_agent(self, state: EquippedState, runtime: Runtime[Any]) -> None:
        """Ends the sessions."""
        await self._registry.close_run(state.get("callsheet_run", ""))

    def _shown(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        self._own.update(str(tool.get("name") if isinstance(tool, dict) else tool.name) for tool in request.tools)
        held = self._held(request.state)
        return request.override(tools=[*request.tools, *held.values()], model=unstreamed(request.model, held))

    def _normalized(self, response: ModelResponse[Any], state: Any) -> ModelResponse[Any]:
        return normalize(response, self._held(state), self._registry.secrets.of(state.get("callsheet_run", "")))

    def _supervision(self, state: Any) -> Supervision:
        secrets = self._registry.secrets.of(state.get("callsheet_run", ""))
        return Supervision("", self._approval, self._registry, secrets)

    def _called(self, request: ToolCallRequest) -> ToolCallRequest:
        tool = self._held(request.state).get(request.tool_call["name"])
        return request.override(tool=tool) if tool and request.tool is None else request

    def _held(self, state: Any) -> dict[str, BoundTool]:
        """One by one, so that a tool that comes later never changes the name of one that is there."""
        held: dict[str, BoundTool] = {}
        run, user = state.get("callsheet_run", ""), caller()
        for tool in self._registry.permitted(state.get("callsheet_tools", []), user):
            held |= self._registry.bind([tool], run, beside=[*self._own, *held], user=user, held_only=True)
        return held


def _last_request(messages: Sequence[AnyMessage]) -> HumanMessage | None:
    return next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None)
