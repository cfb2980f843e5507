"""The generic worker: a LangChain agent whose model and tools are passed with each step."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar, cast

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
from langgraph.config import get_stream_writer

from callsheet.agents.approval.questions import missing_values
from callsheet.agents.approval.supervised_call import Answer, Send, in_doubt, supervised
from callsheet.agents.calls.call_context import PROGRESS, within
from callsheet.agents.calls.plan import Call, ResultValueError, Status, StepResult, resolved, value_of
from callsheet.agents.calls.run_claim import checkpointer, sole_run
from callsheet.agents.calls.token_usage import usage_of, with_usage_of
from callsheet.agents.calls.tool_result import answer_to, artifact_of
from callsheet.agents.models.chat_models import (
    ModelError,
    answered,
    deferred,
    normalize,
    unstreamed,
    with_written_calls,
)
from callsheet.agents.models.prompts import AGAIN, LAST_TURN
from callsheet.agents.registry.binding import NEED_TOOL, READ_RESULT, RUN_PROGRAM, BoundTool, names_of
from callsheet.agents.work.context import Brief
from callsheet.agents.work.equipment import (
    ENDINGS,
    FINISH,
    OUTCOME,
    OWN_TOOLS,
    Equipment,
    UnsetModel,
    abbreviated,
    answer_reading,
    finished,
    made_calls,
    outcome_of,
    refused_finish,
    repeats_last,
)
from callsheet.agents.work.tool_requests import answer_request
from callsheet.graphs.text.sanitizing import counted, shown

STEP_ID = "step_id"
M = TypeVar("M", bound=BaseMessage)
Handler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class NameStep(AgentMiddleware[AgentState[Any], Any]):
    """Adds the step's id to the metadata of every message, which providers do not get. A worker's first middleware."""

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        """Adds the step's id to the model's messages."""
        response = await handler(request)
        step_id = request.runtime.context.step_id
        return replace(response, result=[_named(message, step_id) for message in response.result])

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Send) -> Answer:
        """Adds the step's id to the tool's message."""
        answer = await handler(request)
        return _named(answer, _equipment(request).step_id) if isinstance(answer, ToolMessage) else answer


class TellCalls(AgentMiddleware[AgentState[Any], Any]):
    """Writes to the custom stream when a call starts and ends. A worker's last middleware, next to the tool."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Send) -> Answer:
        """Sends a call between the events ``tool_started`` and ``tool_finished``, with its ``progress``."""
        write, call, tool = get_stream_writer(), request.tool_call, request.tool
        about = {STEP_ID: _equipment(request).step_id, "call_id": call["id"], "tool": call["name"]}
        if isinstance(tool, BoundTool):
            about |= {"tool": tool.id, "agent": tool.agent}
        began = time.time()
        write({"event": "tool_started", **about, "args": call["args"], "began": began})
        outer = PROGRESS.get()

        async def report(done: float, total: float | None, text: str | None) -> None:
            write({"event": "progress", **about, "progress": done, "total": total, "text": shown(text or "")})
            if outer is not None:
                await outer(done, total, text)

        with within(PROGRESS, report):
            answer, outcome = await handler(request), {"status": "success"}
        if isinstance(answer, ToolMessage):
            artifact = artifact_of(answer)
            outcome = {"status": answer.status, "output": answer.text}
            outcome |= {key: artifact[key] for key in ("seconds", "kind", "effect") if key in artifact}
            answer = answer.model_copy(update={"artifact": {**artifact, "began": began}})
        write({"event": "tool_finished", **about, **outcome})
        return answer


def _equipment(request: ToolCallRequest) -> Equipment:
    return cast("Equipment", request.runtime.context)


def _named(message: M, step_id: str) -> M:
    return message.model_copy(update={"response_metadata": {**message.response_metadata, STEP_ID: step_id}})


_REMINDER = """\
The step is: {step}
If {tools} does it, call that tool now, with everything that it needs. If none does, repeat your answer: {answer}"""
_WORDLESS = """\
The step is: {step}
Your last message was empty. Call a tool that the step still needs, or say what came of the step."""
WEAK_TURNS = 8
"""Maximum number of turns of a weak model in one step: what it has not done by then, it does not do."""


class WeakModelHelp(AgentMiddleware[AgentState[Any], Any]):
    """Reads calls from text, asks once more, and ends a step whose model only repeats itself or only failed.

    A model of a few billion parameters writes calls as text, answers from memory instead of calling a tool, repeats a
    call for ever, or says nothing. A strong model's word stands, so this is off by default (``Settings.weak_model``).
    """

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any] | AIMessage:
        """Calls the model, and helps it if the step's equipment says that it is weak."""
        if not request.runtime.context.weak:
            return await handler(request)
        message = await _said(request, handler)
        if repeated := _repeated(message, request.messages):
            failed = [answer.text for answer in repeated if answer.status == "error"]
            said = failed or [answer.text for answer in repeated]
            return _answered(message, "\n".join(dict.fromkeys(said)), status="failed" if failed else "done")
        if again := _asked_again(request, message):
            with suppress(ModelError):
                message = with_usage_of(await _said(again, handler), message)
        if why := _only_failed(message, request.messages):
            return _answered(message, why, status="failed")
        return ModelResponse(result=[message])


async def _said(request: ModelRequest[Any], handler: Handler) -> AIMessage:
    """The model's message as in the conversation, with the calls that it wrote as text."""
    response = await answered(handler(request))
    bound = {tool.name: tool for tool in request.tools if isinstance(tool, BoundTool)}
    names = [*bound, *(tool["function"]["name"] for tool in request.tools if isinstance(tool, dict))]
    written = [with_written_calls(message, names, request.messages) for message in response.result]
    (told,) = normalize(replace(response, result=written), bound).result
    return told if isinstance(told, AIMessage) else AIMessage(told.text)


def _answered(message: AIMessage, text: str, *, status: str = "done") -> AIMessage:
    about = {OUTCOME: {"status": status, "reply": True}} if status != "done" else {}
    return message.model_copy(update={"content": text, "tool_calls": [], "additional_kwargs": about})


def _repeated(message: AIMessage, before: Sequence[AnyMessage]) -> list[ToolMessage]:
    """The earlier answers, if the model only repeats calls; otherwise empty."""
    answers = {m.tool_call_id: m for m in before if isinstance(m, ToolMessage)}
    made = [call for m in before if isinstance(m, AIMessage) for call in m.tool_calls]
    known = {_key(call): answer for call in made if (answer := answers.get(call["id"] or ""))}
    if any(_key(call) not in known for call in message.tool_calls):
        return []
    return [known[_key(call)] for call in message.tool_calls]


def _only_failed(message: AIMessage, before: Sequence[AnyMessage]) -> str:
    """The last error, if the model ends a step of which every call failed; otherwise empty."""
    answers = [m for m in before if isinstance(m, ToolMessage)]
    if message.tool_calls or not answers or any(answer.status != "error" for answer in answers):
        return ""
    return answers[-1].text


def _asked_again(request: ModelRequest[Any], message: AIMessage) -> ModelRequest[Any] | None:
    """The second request, if the model answered at once without a call, or ended with an empty message.

    Without an earlier result to answer from, a model that made no call is forced to call a tool, if its provider can.
    """
    if message.tool_calls:
        return None
    brief = request.runtime.context.brief
    step, tools = brief.text, [tool.name for tool in request.tools if not isinstance(tool, dict)]
    if len(request.messages) > 1:
        text = _WORDLESS.format(step=step)
        return None if message.text.strip() else request.override(messages=[*request.messages, HumanMessage(text)])
    if not tools:
        return None
    if not brief.inputs:
        return request.override(tool_choice="any")
    text = _REMINDER.format(step=step, tools=" or ".join(tools), answer=message.text)
    return request.override(messages=[*request.messages, HumanMessage(text)])


def _key(call: ToolCall) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True, default=str)


class StepToolsMiddleware(AgentMiddleware[AgentState[Any], Equipment]):
    """Gives the worker the model and the tools of its step, and refuses every call to another tool."""

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any] | AIMessage:
        """Calls the step's model with the step's tools."""
        equipment, messages = request.runtime.context, request.messages
        held = equipment.held(messages)
        calls = equipment.calls(messages, held)
        if doubt := in_doubt(messages, held):
            return _stopped(doubt, "outcome_unknown")
        turns = sum(isinstance(message, AIMessage) for message in messages)
        stop = f"stopped after {counted(equipment.max_turns, 'turn')} without a result"
        closing = turns == equipment.max_turns
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

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Send) -> Answer:
        """Runs a selected tool; a call to another tool is refused, and nothing is sent."""
        equipment = _equipment(request)
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
            from callsheet.agents.programs import run_program

            return await run_program(
                request,
                tools,
                lambda inner, _: self._call(inner, equipment, tools, handler),
                results={result.id: value_of(result) for result in equipment.brief.inputs},
                secrets=equipment.secrets,
                most=equipment.max_calls - made_calls(messages),
            )
        return await self._call(request, equipment, tools, handler)

    async def _call(
        self, request: ToolCallRequest, equipment: Equipment, tools: Mapping[str, BoundTool], handler: Send
    ) -> Answer:
        """Makes a call."""
        call, messages = request.tool_call, request.state["messages"]
        if call["name"] not in tools:
            return _not_held(call, tools, equipment.refused)
        bound = tools[call["name"]]
        if repeats_last(call, messages) and equipment.harmless(bound.id):
            again = f"You have just made this call, and its result stands above; {AGAIN}"
            return answer_to(call, again, {"effect": "none"})
        try:
            arguments = resolved(call["args"], equipment.brief.inputs, equipment.calls(messages, tools))
        except ResultValueError as error:
            return answer_to(call, str(error), error=True)
        request = request.override(tool=bound, tool_call={**call, "args": arguments})
        if equipment.supervision is None:
            answer = await handler(request)
        else:
            answer = await supervised(request, bound, equipment.supervision, handler)
        if arguments != call["args"] and (artifact := artifact_of(answer)):
            return cast("ToolMessage", answer).model_copy(update={"artifact": {"args": arguments, **artifact}})
        return answer


worker = create_agent(
    UnsetModel(),
    tools=[],
    middleware=[NameStep(), StepToolsMiddleware(), WeakModelHelp(), TellCalls()],
    context_schema=Equipment,
    name="worker",
)
"""Compiled once; each call passes its ``Equipment`` as context."""


async def carry_out(brief: Brief, equipment: Equipment, app: Runnable[Any, Any] = worker) -> StepResult:
    """Lets the worker do one step; the caller fills in ``id``, ``depends_on`` and ``agents`` of the result.

    A model that does not answer raises a ModelError, another run of the same step a ConcurrentRunError.
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
        note="" if status != "done" or any(call.agent for call in calls) else "no tool was called",
        data=declared.get("data"),
        error=error,
        exhausted=status != "done"
        and (by_word or any(call.kind in ("rejected", "sign_in") or _may_last(call, equipment) for call in calls)),
        missing=missing_values(declared),
        usage=usage_of(messages, time.monotonic() - began),
    )


def _may_last(call: Call, equipment: Equipment) -> bool:
    """Whether a call took effect and may have changed something: another agent must not repeat it."""
    return not (call.error or call.tool in (*OWN_TOOLS, RUN_PROGRAM) or equipment.harmless(call.tool))


def _not_held(call: ToolCall, tools: Mapping[str, BoundTool], refused: Mapping[str, str]) -> ToolMessage:
    """The answer to a call of a tool that the worker does not have, or does not have any more."""
    artifact: dict[str, Any] = {"effect": "none"}
    text = f"{call['name']} is not among the tools of this step; there are: {', '.join(tools) or 'none'}"
    for tool_id, why in refused.items():
        agent, _, name = tool_id.partition("/")
        if call["name"] in names_of(agent, name):
            artifact |= {"agent": agent, "tool": tool_id, "kind": "refused"}
            text = f"agent {agent!r}, tool {name!r}: {why}"
    return answer_to(call, text, artifact, error=True)


def _stopped(why: str, status: Status = "failed", *, reply: BaseMessage | None = None) -> AIMessage:
    """Ends the step; the cost of a reply that is not used is kept."""
    outcome: dict[str, Any] = {"status": status, "reason": why}
    if not isinstance(reply, AIMessage):
        return AIMessage(why, additional_kwargs={OUTCOME: outcome})
    kept = {"usage_metadata": reply.usage_metadata, "response_metadata": reply.response_metadata}
    return AIMessage(why, additional_kwargs={OUTCOME: {**outcome, "reply": True}}, **kept)
