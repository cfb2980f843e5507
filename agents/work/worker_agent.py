"""The generic worker: a LangChain agent that gets its model and tools with each step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
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

from callsheet.agents.approval.call_app import examine_call, make_call
from callsheet.agents.approval.call_events import call_events
from callsheet.agents.approval.call_order import in_order
from callsheet.agents.approval.call_record import in_doubt
from callsheet.agents.approval.program_review import ProgramReview
from callsheet.agents.approval.questions import missing_values
from callsheet.agents.approval.supervised_call import Answer, Send
from callsheet.agents.calls.outcome import Call, Outcome, answer_to, outcome_in, with_outcome
from callsheet.agents.calls.plan import GAVE, ResultValueError, Status, StepResult, resolve_references, value_of
from callsheet.agents.calls.run_claim import checkpointer, sole_run
from callsheet.agents.calls.token_usage import usage_of, with_usage_of
from callsheet.agents.models.chat_models import (
    ModelError,
    broken_call,
    cut_reason,
    is_rejected,
    model_answer,
    normalize,
    without_streaming,
)
from callsheet.agents.models.prompts import LAST_TURN
from callsheet.agents.registry.binding import NEED_TOOL, READ_RESULT, RUN_PROGRAM, BoundTool, names_of_bound
from callsheet.agents.registry.checked_call import Approval
from callsheet.agents.work.context import Brief
from callsheet.agents.work.equipment import Equipment, UnsetModel, answer_reading, made_calls, reminder
from callsheet.agents.work.finish import (
    FINISH,
    NOTHING_DONE,
    OUTCOME,
    ends_of,
    finish_message,
    refused_finish,
    something_done,
    work_outcome,
)
from callsheet.agents.work.media import has_media, with_media, without_media
from callsheet.agents.work.tool_requests import answer_request, with_late_tools
from callsheet.graphs.text.messages import counted

STEP_ID = "step_id"
M = TypeVar("M", bound=BaseMessage)
Handler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


def _equipment(request: ToolCallRequest) -> Equipment:
    return cast("Equipment", request.runtime.context)


def _named(message: M, step_id: str) -> M:
    return message.model_copy(update={"response_metadata": {**message.response_metadata, STEP_ID: step_id}})


_EMPTY = "Your last message was empty. Call a tool that the task still needs, or say what came of the task."
_CUT = "Your last message was cut at its token limit. Be shorter: make one call at a time, or say less."
_UNREAD = "Your last message could not be read: {}\nWrite the arguments of each call as one JSON object."
_QUOTED = 500
"""Characters of an error of a model's client that the model is told."""


class StepToolsMiddleware(AgentMiddleware[AgentState[Any], Equipment]):
    """Gives the worker the model and the tools of its steps, and refuses calls of any other tool.

    Every message has the step's id in its metadata, which providers do not get.
    """

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        """Calls the worker's model with its tools until a reply ends the turn or the task."""
        equipment = request.runtime.context
        equipment.seen[:] = request.messages
        replies = equipment.replies
        known = len(replies)
        try:
            new = await self._next(request, handler)
        except ModelError as error:
            lost = replies[known:]
            if not lost and not made_calls(request.messages):
                raise
            # An error that ends the work must not hide what was done, and what was spent, before.
            new = [_stopped(str(error), reply=reduce(with_usage_of, lost) if lost else None)]
        return ModelResponse(result=[_named(message, equipment.step_id) for message in new])

    async def _next(self, request: ModelRequest[Any], handler: Handler) -> list[AIMessage | HumanMessage]:
        """Returns the new messages; the last one ends the turn or the task."""
        equipment = request.runtime.context
        messages = request.messages
        held = equipment.held(messages)
        doubt = in_doubt(messages, held)
        if doubt:
            return [_stopped(doubt.reason, "outcome_unknown")]
        limit = _limit(equipment, messages)
        if limit:
            return [_stopped(limit)]

        # In its last turn it can only say what came of the task.
        closing = _turns(messages) == equipment.max_turns
        asking = request.override(
            model=without_streaming(equipment.model, held),
            tools=[] if closing else equipment.shown(held),
            system_message=SystemMessage(f"{equipment.prompt}\n{LAST_TURN}" if closing else equipment.prompt),
            messages=await _seen(equipment, messages, held),
        )
        calls = equipment.calls(messages, held)
        reply = await _usable(asking, handler, equipment, held)
        new: list[AIMessage | HumanMessage] = [reply]
        if not closing and _ends_without_a_call(reply, equipment, messages, calls):
            # Both stay in the conversation, so that its beginning is the same at the next turn.
            new.append(HumanMessage(NOTHING_DONE))
            again = asking.override(messages=[*asking.messages, *new])
            new.append(await _usable(again, handler, equipment, held))

        last = new[-1]
        if made_calls([*messages, *new]) > equipment.max_calls:
            over = f"stopped before it made more than {counted(equipment.max_calls, 'call')} for one step"
            return [*new[:-1], _stopped(over, reply=last)]
        if closing and isinstance(last, AIMessage) and last.tool_calls:
            return [_stopped(_out_of_turns(equipment), reply=last)]
        ended = finish_message(last, calls, equipment.brief.step_ids)
        return [*new[:-1], ended or last]

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Send) -> Answer:
        """Runs a tool that was selected for the worker; refuses a call of any other tool before it is sent."""
        equipment = _equipment(request)
        messages = request.state["messages"]
        seen = equipment.seen
        if len(seen) < len(messages):  # the first of the calls of this turn
            seen[:] = messages
        tools = equipment.held(messages)
        answer: Answer | None = await _own_answer(request, equipment, tools)
        if answer is None:
            async with in_order(request, tools):
                if request.tool_call["name"] == RUN_PROGRAM and equipment.code:
                    answer = await _answer_of_program(request, equipment, tools, handler)
                else:
                    answer = await _answer_of_call(request, equipment, tools, handler)
        if isinstance(answer, ToolMessage):
            answer = _named(answer, equipment.step_id)
            seen.append(answer)
        return answer


async def _own_answer(
    request: ToolCallRequest, equipment: Equipment, tools: Mapping[str, BoundTool]
) -> ToolMessage | None:
    """Answers a malformed call, and a call of one of the worker's own tools; None for a call of another tool."""
    call = request.tool_call
    messages = request.state["messages"]
    problem = broken_call(call, messages)
    if problem:
        return answer_to(call, problem, error=True)
    if call["name"] == NEED_TOOL and equipment.requests:
        return await answer_request(call, tools, equipment.requests)
    if call["name"] == READ_RESULT:
        return answer_reading(call, equipment.brief.inputs, equipment.calls(messages, tools))
    if call["name"] == FINISH:
        alone = len(messages[-1].tool_calls) == 1
        return refused_finish(call, equipment.calls(messages, tools), equipment.brief.step_ids, alone=alone)
    return None


async def _answer_of_program(
    request: ToolCallRequest, equipment: Equipment, tools: Mapping[str, BoundTool], handler: Send
) -> ToolMessage:
    """Runs the program in the arguments of the call, which calls tools itself."""
    from callsheet.agents.programs.program import run_program

    async def make(inner: ToolCallRequest, _: BoundTool, approval: Approval | None) -> Answer:
        return await _answer_of_call(inner, equipment, tools, handler, approval)

    return await run_program(
        request,
        tools,
        make,
        results={result.id: value_of(result) for result in equipment.brief.inputs},
        secrets=equipment.secrets,
        most=equipment.max_calls - made_calls(request.state["messages"]),
        review=ProgramReview(equipment.supervision, request) if equipment.supervision else None,
    )


async def _answer_of_call(
    request: ToolCallRequest,
    equipment: Equipment,
    tools: Mapping[str, BoundTool],
    handler: Send,
    approval: Approval | None = None,
) -> Answer:
    """Makes a call of a tool of the catalog; ``approval`` is a person's earlier approval of this call, if any."""
    call = request.tool_call
    messages = request.state["messages"]
    supervision = equipment.supervision
    if call["name"] not in tools:
        return _not_held(call, tools, equipment.refused)
    bound = tools[call["name"]]
    if supervision is not None and bound.harmless:
        answer_before = reminder(call, messages)
        if answer_before:
            return answer_before
    try:
        arguments = resolve_references(call["args"], equipment.brief.inputs, equipment.calls(messages, tools))
    except ResultValueError as error:
        return answer_to(call, str(error), error=True)
    request = request.override(tool=bound, tool_call={**call, "args": arguments})
    if supervision is None:
        with call_events(request, equipment.step_id) as finished:
            answer = finished(await handler(request))
    else:
        case = await examine_call(request, bound, supervision, handler, events=True)
        answer = await make_call(case, approval=approval)
        if equipment.requests is not None:
            answer = await with_late_tools(answer, bound.agent, equipment.requests, messages)
    if isinstance(answer, ToolMessage) and arguments != call["args"]:
        outcome = outcome_in(answer)
        if outcome.args is None:  # otherwise a person has changed them
            # References in the arguments of the call stand for these.
            return with_outcome(answer, outcome.model_copy(update={"args": arguments}))
    return answer


def _turns(messages: Sequence[AnyMessage]) -> int:
    """Counts the turns; a text after which the worker was asked to go on counts as one turn with the next reply."""
    return sum(isinstance(message, AIMessage) for message in messages) - sum(map(_asks_about_words, messages))


def _asks_about_words(message: AnyMessage) -> bool:
    return isinstance(message, HumanMessage) and message.text == NOTHING_DONE


def _out_of_turns(equipment: Equipment) -> str:
    return f"stopped after {counted(equipment.max_turns, 'turn')} without a result"


def _limit(equipment: Equipment, messages: Sequence[AnyMessage]) -> str | None:
    """Returns a message that names the limit that the worker has reached; None if it may go on."""
    if _turns(messages) > equipment.max_turns:
        return _out_of_turns(equipment)
    if equipment.max_tokens is None:
        return None
    spent = usage_of(messages).tokens
    return f"stopped after {spent:,} tokens: the run's token budget is spent" if spent >= equipment.max_tokens else None


async def _seen(
    equipment: Equipment, messages: Sequence[AnyMessage], held: Mapping[str, BoundTool]
) -> list[AnyMessage]:
    """Returns the conversation for the model, with the ids of results and the media that the model accepts."""
    conversation = equipment.labelled(messages, held) if equipment.own_tools else list(messages)
    return await asyncio.to_thread(with_media, conversation, equipment.model)


async def _usable(
    asking: ModelRequest[Any], handler: Handler, equipment: Equipment, held: Mapping[str, BoundTool]
) -> AIMessage:
    """Asks the model for a reply; asks once more after an empty reply, and once more after a reply that was cut.

    The usage of the returned reply includes the replies that were not used.
    """
    reply = await _replied(asking, handler, equipment, held)
    complaints: list[str] = []
    while (complaint := _unusable(reply)) and complaint not in complaints:
        complaints.append(complaint)
        again = asking.override(messages=[*asking.messages, HumanMessage(complaint)])
        reply = with_usage_of(await _replied(again, handler, equipment, held), reply)
    return reply


async def _replied(
    asking: ModelRequest[Any], handler: Handler, equipment: Equipment, held: Mapping[str, BoundTool]
) -> AIMessage:
    """Asks the model for one reply, and prepares it for the conversation."""
    try:
        response = await model_answer(handler(asking))
    except ModelError as error:
        again = _without_the_cause(asking, error)
        if again is None:
            raise
        response = await model_answer(handler(again))
    equipment.replies.extend(reply for reply in response.result if isinstance(reply, AIMessage))
    reply = normalize(response, held, equipment.secrets, before=asking.messages).result[-1]
    return reply if isinstance(reply, AIMessage) else AIMessage(reply.text)


def _without_the_cause(asking: ModelRequest[Any], error: ModelError) -> ModelRequest[Any] | None:
    """Returns a request that avoids the cause of this error; None if the cause cannot be avoided."""
    if has_media(asking.messages) and is_rejected(error.__cause__):
        # A medium that a provider does not take must not end the work: the note in its place says where it is.
        return asking.override(messages=without_media(asking.messages))
    if isinstance(error.__cause__, ValueError):
        # The provider has answered, and its client cannot read the answer.
        complaint = HumanMessage(_UNREAD.format(str(error.__cause__)[:_QUOTED]))
        return asking.override(messages=[*asking.messages, complaint])
    return None


def _unusable(reply: AIMessage) -> str | None:
    """Returns what to tell the model about a reply that is empty or was cut; None for any other reply."""
    if reply.tool_calls:
        return None
    if cut_reason(reply):
        return _CUT
    return None if reply.text.strip() else _EMPTY


def _ends_without_a_call(
    reply: AIMessage, equipment: Equipment, messages: Sequence[AnyMessage], calls: Sequence[Call]
) -> bool:
    """Returns whether a worker ends with a text, no call has succeeded, and it was not yet asked about that."""
    if reply.tool_calls or not reply.text.strip() or not equipment.own_tools:
        return False
    if any(map(_asks_about_words, messages)):
        return False
    before = equipment.brief.before.calls if equipment.brief.before else ()
    refused = any(call.kind in ("rejected", "sign_in") for call in calls)
    return not (refused or something_done([*before, *calls]))


worker = create_agent(
    UnsetModel(),
    tools=[],
    middleware=[StepToolsMiddleware()],
    context_schema=Equipment,
    name="worker",
)
"""The worker, compiled once; each call passes its ``Equipment`` as context."""


async def carry_out(brief: Brief, equipment: Equipment, app: Runnable[Any, Any] = worker) -> StepResult:
    """Runs the worker for one step; the caller sets ``id``, ``depends_on`` and ``agents`` of the result.

    Raises:
        ModelError: The model has not answered, and no call was made yet.
        ConcurrentRunError: Another run does this step.
    """
    equipment = replace(equipment, brief=brief)
    about = {"step_id": equipment.step_id}
    task = HumanMessage(brief.opening(), additional_kwargs=about)
    named: RunnableConfig = {"run_name": f"worker, step {equipment.step_id}", "metadata": about}
    began = time.monotonic()
    async with sole_run(checkpointer()):
        state = await app.ainvoke({"messages": [task]}, named, context=equipment)
    messages: Sequence[AnyMessage] = state["messages"]
    last = messages[-1]
    held = equipment.held(messages)
    calls = equipment.calls(messages, held)
    before = brief.before.calls if brief.before else ()
    status, error = work_outcome(last, [*before, *calls], words_end=not equipment.own_tools)
    is_result = status in GAVE
    sign_in = next((call.error for call in calls if call.kind == "sign_in"), "")
    if not is_result and sign_in not in error:
        error = f"{error}\n{sign_in}"  # it names the page, whatever the model says
    note = ""
    if is_result and not any(call.agent for call in [*before, *calls]):
        note = "no tool was called"
    declared = last.additional_kwargs.get(OUTCOME, {})
    return StepResult(
        id="",
        text=brief.text,
        status=status,
        tools=tuple(tool.id for tool in held.values()),
        calls=calls,
        result=last.text.strip() if is_result else "",
        note=note,
        data=declared.get("data"),
        ends=ends_of(declared),
        error=error,
        replan=declared.get("status") == "need_plan",
        missing=missing_values(declared),
        usage=usage_of(messages, time.monotonic() - began),
    )


def _not_held(call: ToolCall, tools: Mapping[str, BoundTool], refused: Mapping[str, str]) -> ToolMessage:
    """Answers a call of a tool that the worker does not have, or no longer has."""
    outcome = Outcome(effect="none")
    text = f"{call['name']} is not among the tools of this step; there are: {', '.join(tools) or 'none'}"
    for tool_id, why in refused.items():
        agent, _, name = tool_id.partition("/")
        if call["name"] in names_of_bound(agent, name):
            outcome = Outcome(effect="none", agent=agent, tool=tool_id, kind="refused")
            text = f"agent {agent!r}, tool {name!r}: {why}"
    return answer_to(call, text, outcome, error=True)


def _stopped(why: str, status: Status = "failed", *, reply: BaseMessage | None = None) -> AIMessage:
    """Builds the message that ends the step, and keeps the token usage of a reply that was discarded."""
    outcome: dict[str, Any] = {"status": status, "reason": why}
    if not isinstance(reply, AIMessage):
        return AIMessage(why, additional_kwargs={OUTCOME: outcome})
    return AIMessage(
        why,
        additional_kwargs={OUTCOME: {**outcome, "reply": True}},
        usage_metadata=reply.usage_metadata,
        response_metadata=reply.response_metadata,
    )
