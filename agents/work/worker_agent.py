"""The generic worker: a LangChain agent whose model and tools are passed with each step."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command

from callsheet.agents.approval.questions import missing_values
from callsheet.agents.approval.supervised_call import Send, in_doubt, supervised
from callsheet.agents.calls.plan import Call, Status, StepResult
from callsheet.agents.calls.run_claim import checkpointer, sole_run
from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.models.chat_models import answered
from callsheet.agents.models.deferred_tools import deferred
from callsheet.agents.models.model_output import normalize, unstreamed
from callsheet.agents.models.prompts import AGAIN, LAST_TURN
from callsheet.agents.programs.program_run import Program, functions_of, run_program
from callsheet.agents.registry.binding import NEED_TOOL, READ_RESULT, RUN_PROGRAM, BoundTool, names_of
from callsheet.agents.work.brief import Brief
from callsheet.agents.work.equipment import Equipment, UnsetModel
from callsheet.agents.work.finish import ENDINGS, FINISH, OUTCOME, finished, refused_finish
from callsheet.agents.work.need_tool import answer_request
from callsheet.agents.work.progress import NameStep, TellCalls
from callsheet.agents.work.read_result import abbreviated, answer_reading
from callsheet.agents.work.value_references import ResultValueError, resolved, value_of
from callsheet.agents.work.weak_model import WeakModelHelp
from callsheet.agents.work.worker_conversation import (
    OWN_TOOLS,
    made_calls,
    outcome_of,
    repeats_last,
)
from callsheet.graphs.text.sanitizing import counted

_NOTHING = Equipment(tools={})


class StepToolsMiddleware(AgentMiddleware[AgentState[Any], Equipment]):
    """Gives the worker the model and the tools of its step, and refuses every call to another tool."""

    async def awrap_model_call(
        self,
        request: ModelRequest[Equipment],
        handler: Callable[[ModelRequest[Equipment]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage:
        """Calls the step's model with the step's tools."""
        equipment, messages = request.runtime.context, request.messages
        held = equipment.held(messages)
        calls = equipment.calls(messages, held)
        if doubt := in_doubt(messages, held):
            return _stopped(doubt, "outcome_unknown")
        turns = sum(isinstance(message, AIMessage) for message in messages)
        closing, stop = (
            turns == equipment.max_turns,
            f"stopped after {counted(equipment.max_turns, 'turn')} without a result",
        )
        if turns > equipment.max_turns:
            return _stopped(stop)
        if equipment.max_tokens is not None and (spent := usage_of(messages).tokens) >= equipment.max_tokens:
            return _stopped(f"stopped after {spent:,} tokens: the run's token budget is spent")
        asking = request.override(
            model=unstreamed(equipment.model, held),
            tools=[] if closing else equipment.shown(held, calls),
            system_message=SystemMessage(f"{equipment.prompt}\n{LAST_TURN}" if closing else equipment.prompt),
            messages=abbreviated(messages, calls) if equipment.own_tools else messages,
        )
        response = await answered(handler(asking if equipment.code else deferred(asking, held)))
        equipment.replies.extend(reply for reply in response.result if isinstance(reply, AIMessage))
        response = normalize(response, held, equipment.secrets)
        last = response.result[-1]
        if made_calls([*messages, last]) > equipment.max_calls:
            over = f"stopped before it made more than {counted(equipment.max_calls, 'call')} for one step"
            return _stopped(over, reply=last)
        if closing and isinstance(last, AIMessage) and last.tool_calls:
            return _stopped(stop, reply=last)
        return finished(last, calls) or response

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Runs a selected tool; a call to another tool is refused, and nothing is sent."""
        context: object = request.runtime.context
        equipment = context if isinstance(context, Equipment) else _NOTHING
        call, messages = request.tool_call, request.state["messages"]
        tools = equipment.held(messages)
        if call["name"] == NEED_TOOL and equipment.requests:
            return await answer_request(call, tools, equipment.requests)
        if call["name"] == READ_RESULT:
            return answer_reading(call, equipment.brief.inputs, equipment.calls(messages, tools))
        if call["name"] == FINISH:
            alone = len(messages[-1].tool_calls) == 1
            return refused_finish(call, equipment.calls(messages, tools), alone=alone)
        if call["name"] == RUN_PROGRAM and equipment.code:
            return await self._program(request, equipment, tools, handler)
        return await self._call(request, equipment, tools, handler)

    async def _program(
        self, request: ToolCallRequest, equipment: Equipment, tools: Mapping[str, BoundTool], handler: Send
    ) -> ToolMessage:
        """Runs a program, each of whose calls goes the way of any other."""
        call, messages = request.tool_call, request.state["messages"]
        if call["id"] != next(other["id"] for other in messages[-1].tool_calls if other["name"] == RUN_PROGRAM):
            told = "one program at a time: this one was not run"
            return ToolMessage(told, tool_call_id=call["id"] or "", name=RUN_PROGRAM, status="error")

        async def send(inner: ToolCall) -> ToolMessage | Command[Any]:
            return await self._call(request.override(tool_call=inner), equipment, tools, handler)

        results = {result.id: value_of(result) for result in equipment.brief.inputs}
        most = equipment.max_calls - made_calls(messages)
        return await run_program(
            Program(call, functions_of(tools), tools, send, most=most, results=results, secrets=equipment.secrets)
        )

    async def _call(
        self, request: ToolCallRequest, equipment: Equipment, tools: Mapping[str, BoundTool], handler: Send
    ) -> ToolMessage | Command[Any]:
        """Makes a call."""
        call, messages = request.tool_call, request.state["messages"]
        if call["name"] not in tools:
            return _not_held(call, tools, equipment.refused)
        bound = tools[call["name"]]
        if repeats_last(call, messages) and equipment.harmless(bound.id):
            again = f"You have just made this call, and its result stands above; {AGAIN}"
            return ToolMessage(again, tool_call_id=call["id"] or "", name=call["name"], artifact={"effect": "none"})
        try:
            arguments = resolved(call["args"], equipment.brief.inputs, equipment.calls(messages, tools))
        except ResultValueError as error:
            return ToolMessage(str(error), tool_call_id=call["id"] or "", name=call["name"], status="error")
        request = request.override(tool=bound, tool_call={**call, "args": arguments})
        if equipment.supervision is None:
            answer = await handler(request)
        else:
            answer = await supervised(request, bound, equipment.supervision, handler)
        return answer if arguments == call["args"] else _with_args(answer, arguments)


worker = create_agent(
    UnsetModel(),
    tools=[],
    middleware=[NameStep(), StepToolsMiddleware(), WeakModelHelp(), TellCalls()],
    context_schema=Equipment,
    name="worker",
)
"""Compiled once; each call passes its ``Equipment`` as context."""


async def carry_out(brief: Brief, equipment: Equipment, app: Runnable[Any, Any] = worker) -> StepResult:
    """Lets the worker do one step.

    Args:
        brief: The step, its tools and the results that it depends on.
        equipment: The model and the tools.
        app: The worker, if not the one of this module.

    Returns:
        The result; the caller fills in ``id``, ``depends_on`` and ``agents``.

    Raises:
        ModelError: The model did not answer.
        ConcurrentRunError: Another run of the thread works on the same step.
    """
    equipment, about = replace(equipment, brief=brief), {"step_id": equipment.step_id}
    task = HumanMessage(brief.opening(), additional_kwargs=about)
    named: RunnableConfig = {"run_name": f"worker, step {equipment.step_id}", "metadata": about}
    began = time.monotonic()
    async with sole_run(checkpointer()):
        state = await app.ainvoke({"messages": [task]}, named, context=equipment)
    messages: Sequence[AnyMessage] = state["messages"]
    last, held = messages[-1], equipment.held(messages)
    calls = equipment.calls(messages, held)
    status, error = outcome_of(last, calls)
    lacks = next((call.error for call in calls if call.kind == "sign_in"), "")
    if status != "done" and lacks not in error:
        error = f"{error}\n{lacks}"  # it names the page, whatever the model says
    declared = last.additional_kwargs.get(OUTCOME, {})
    by_word = bool(declared.get("reply")) and declared.get("status") in ENDINGS  # then no other agents try
    return StepResult(
        id="",
        text=brief.text,
        status=status,
        tools=tuple(tool.id for tool in held.values()),
        calls=calls,
        result=last.text.strip() if status == "done" else "",
        data=declared.get("data"),
        error=error or "",
        exhausted=status != "done"
        and (by_word or any(call.kind in ("rejected", "sign_in") or _may_last(call, equipment) for call in calls)),
        missing=missing_values(last.additional_kwargs),
        usage=usage_of(messages, time.monotonic() - began),
    )


def _may_last(call: Call, equipment: Equipment) -> bool:
    """Whether a call took effect and may have changed something: another agent must not repeat it."""
    return not (call.error or call.tool in (*OWN_TOOLS, RUN_PROGRAM) or equipment.harmless(call.tool))


def _with_args(answer: ToolMessage | Command[Any], arguments: Mapping[str, Any]) -> ToolMessage | Command[Any]:
    """The answer of a call, with the values of its references."""
    if not isinstance(answer, ToolMessage) or not isinstance(answer.artifact, dict):
        return answer
    return answer.model_copy(update={"artifact": {"args": dict(arguments), **answer.artifact}})


def _not_held(call: ToolCall, tools: Mapping[str, BoundTool], refused: Mapping[str, str]) -> ToolMessage:
    """The answer to a call of a tool that the worker does not have, or does not have any more."""
    artifact: dict[str, Any] = {"effect": "none"}
    text = f"{call['name']} is not among the tools of this step; there are: {', '.join(tools) or 'none'}"
    for tool_id, why in refused.items():
        agent, _, name = tool_id.partition("/")
        if call["name"] in names_of(agent, name):
            artifact |= {"agent": agent, "tool": tool_id, "kind": "refused"}
            text = f"agent {agent!r}, tool {name!r}: {why}"
    return ToolMessage(text, tool_call_id=call["id"] or "", name=call["name"], status="error", artifact=artifact)


def _stopped(why: str, status: Status = "failed", *, reply: BaseMessage | None = None) -> AIMessage:
    """Ends the step; the cost of a reply that is not used is kept."""
    outcome = {OUTCOME: {"status": status, "reason": why}}
    if not isinstance(reply, AIMessage):
        return AIMessage(why, additional_kwargs=outcome)
    kept = {"usage_metadata": reply.usage_metadata, "response_metadata": reply.response_metadata}
    return AIMessage(why, additional_kwargs={OUTCOME: {**outcome[OUTCOME], "reply": True}}, **kept)
