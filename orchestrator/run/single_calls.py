"""Makes calls of single tools outside of a run of the supervisor, in the same way as the calls of a worker."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, cast

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import TypedDict

from callsheet.agents import ApprovalPolicy, BoundTool, Supervision, ToolRegistry
from callsheet.agents.approval.call_app import examine_call, make_call
from callsheet.graphs import User
from callsheet.graphs.trust.consent import StandingApprovals
from callsheet.graphs.trust.open_calls import CallLedger

AskPerson = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""A function that asks a person the question in the payload of an interrupt, and returns the answer."""


@dataclass(frozen=True, slots=True)
class _Call:
    """What no checkpoint can hold."""

    supervised: Callable[[], Awaitable[Any]]


class _State(TypedDict):
    answer: NotRequired[Any]


async def _call(state: _State, runtime: Runtime[_Call]) -> dict[str, Any]:
    return {"answer": await runtime.context.supervised()}


class SingleCalls:
    """Makes calls of single tools: with approval, records of open calls, and all checks.

    Args:
        approval: When a person is asked.
    """

    def __init__(self, approval: ApprovalPolicy = "ask") -> None:
        self._approval: ApprovalPolicy = approval
        self._saver = InMemorySaver()
        workflow = StateGraph(_State, context_schema=_Call)
        workflow.add_node("call", _call)
        workflow.add_edge(START, "call")
        workflow.add_edge("call", END)
        self._app = workflow.compile(checkpointer=self._saver, name="single_call")

    def supervision(self, registry: ToolRegistry, session: str, user: User) -> Supervision:
        """Returns how the calls of a user in a session are supervised."""
        label = registry.loaded.label
        return Supervision(
            "",
            self._approval,
            registry,
            registry.secrets.of(session),
            notice=False,
            standing=StandingApprovals.of(label, user.id),
            ledger=CallLedger(label, user.id),
        )

    async def call(
        self, bound: BoundTool, arguments: Mapping[str, Any], supervision: Supervision, ask: AskPerson
    ) -> ToolMessage:
        """Calls a tool and returns its answer; ``ask`` asks a person if the call needs approval.

        An exception of ``ask`` ends the call, and nothing is sent.
        """

        async def send(request: ToolCallRequest) -> ToolMessage:
            answer: ToolMessage = await bound.ainvoke(request.tool_call)
            return answer

        thread = f"call-{uuid.uuid4().hex}"
        call = ToolCall(name=bound.name, args=dict(arguments), id=thread, type="tool_call")
        # There is no agent whose state and runtime a tool could ask for.
        request = ToolCallRequest(tool_call=call, tool=bound, state={}, runtime=None)  # type: ignore[arg-type]
        case = await examine_call(request, bound, supervision, send)
        if not await case.asks():
            return cast("ToolMessage", await make_call(case))

        async def checked_anew() -> Any:
            # The definition of the tool may change while a person thinks.
            return await make_call(await examine_call(request, bound, supervision, send))

        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        given: Any = {}
        context = _Call(checked_anew)
        try:
            while True:
                state = await self._app.ainvoke(given, config, context=context)
                asked = state.get("__interrupt__")
                if not asked:
                    answer: ToolMessage = state["answer"]
                    return answer
                given = Command(resume=await ask(asked[0].value))
        finally:
            self._saver.delete_thread(thread)
