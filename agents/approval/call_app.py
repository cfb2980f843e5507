"""Makes a call: asks for approval if it needs one, sends it, and settles an unknown outcome.

Each call that may need approval, or must not be sent twice, runs as a small app inside the worker's tool node. Each
checkpoint is written before the next node starts, whatever the durability of the run. So a decision is stored before
anything is sent, and a call that was running when the program died is recognised.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, cast

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import StateSnapshot

from callsheet.agents.approval.call_events import call_events
from callsheet.agents.approval.call_record import CallPlace
from callsheet.agents.approval.call_state import CallState, GoingOn, Update, going_on_update, held_call
from callsheet.agents.approval.questions import MOST_WRONG, ask_for_server
from callsheet.agents.approval.supervised_call import PROGRAM_ASKS, Answer, Send, SupervisedCall
from callsheet.agents.approval.supervision import Supervision
from callsheet.agents.calls.call_context import TASK, TaskCall, within
from callsheet.agents.calls.outcome import outcome_in, with_outcome
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.review import TOOK_EFFECT, AnswerError, Decision
from callsheet.agents.calls.run_claim import checkpointer, sole_run
from callsheet.agents.registry.binding import BoundTool
from callsheet.agents.registry.checked_call import CHECKED, Approval
from callsheet.agents.safety.secrets import LostSecretError
from callsheet.graphs.errors import SettingsError
from callsheet.graphs.trust.open_calls import OpenCall, Verdict

_CUT_OFF = "it was running when the program stopped or the run was rolled back; whether it took effect is unknown"
# Seconds for which an approval is valid; a tool that interrupts by itself may wait for longer.
_GOOD_FOR = 600.0
NO_CHECKPOINTER = (
    "some tools need approval before a call, and approval needs a checkpointer. Compile the workflow with one, "
    "compile(checkpointer=InMemorySaver()); on a LangGraph server, run it in a thread. Or allow the tools by name, "
    'Settings(allow=("agent/tool",)), or turn approval off, Settings(approval="never")'
)


async def _ask(state: CallState) -> Update:
    """Asks a person, if the call needs approval and has none."""
    case = get_runtime(SupervisedCall).context
    checked = await case.check(state["args"])
    why = state["why"]
    refusal = case.refusal()
    if refusal:
        return {"answer": case.refused(refusal)}
    if state["approved"] and state["approved"] == checked.digest:
        return {"when": state["when"]}  # a person has seen this call among those of its program
    if not why:
        return {"approved": checked.digest, "when": time.time()}
    record = case.record()
    match await record.earlier():
        case ToolMessage() as answer:
            return {"answer": answer}
        case OpenCall() as earlier:
            return _of_earlier(case, earlier)
    try:
        decision = case.ask("tool_approval", why, state["problem"])
        if decision.always:
            await case.remember()
    except (AnswerError, LostSecretError) as error:
        wrong = state.get("wrong", 0) + 1
        if wrong < MOST_WRONG:
            return {"problem": str(error), "wrong": wrong}
        return {"answer": case.rejected(f"the question was asked {wrong} times without a valid answer ({error})")}
    return {"wrong": 0, **await _decided(decision, case)}


async def _decided(decision: Decision, case: SupervisedCall) -> Update:
    """Returns what becomes of a call by a person's decision."""
    match decision.type:
        case "approve":
            return {"approved": case.checked.digest, "when": time.time(), "problem": None}
        case "edit":
            args = case.edited(decision.args or {})
            await case.check(args)
            needed = case.needs_approval()
            # Asks again in any case; without a new reason, with the old one.
            return {"args": args, "problem": None, **({"why": needed.reason} if needed else {})}
        case "reject":
            return {"answer": case.rejected_by(decision)}
        case "respond":
            return {"answer": case.said(decision.message, kind="", effect="none", error=False)}


async def _send(state: CallState) -> Update:
    """Sends an approved call, unless it was sent before."""
    case = get_runtime(SupervisedCall).context
    args = state["args"]
    checked = await case.check(args)
    if case.cut_off:
        case.cut_off = False
        entry = await case.record().own()
        if entry is not None and entry.task:
            return going_on_update(GoingOn(entry.task, entry.id))
        said = case.said(f"{case.named}: {_CUT_OFF}", kind="crash", effect="unknown")
        return _unknown(said, entry.id if entry else None)
    if state["why"]:
        if state["approved"] != checked.digest or time.time() - state["when"] > _GOOD_FOR:
            return {"approved": None, "problem": "the approval is too old, or the tool's definition has changed since"}
        case.checked = replace(checked, approval=Approval(checked.digest, state["when"]))
    answer = await _sent(case, held_call(case, state))
    match answer:
        case OpenCall():
            return _of_earlier(case, answer)
        case GoingOn():
            return going_on_update(answer)
        case ToolMessage():
            own = await case.record().own() if _in_doubt(case, answer) else None
            return _answered(case, state, answer, own.id if own else None)
    return {"answer": answer, "unknown": None}


def _in_doubt(case: SupervisedCall, answer: ToolMessage) -> bool:
    """Returns whether an answer leaves the outcome of a call unknown that must not be repeated."""
    return answer.status == "error" and outcome_in(answer).effect == "unknown" and not case.repeatable


def _answered(
    case: SupervisedCall, state: CallState, answer: ToolMessage, entry_id: str | None, *, sent: bool = True
) -> Update:
    """Returns the state of a call with an answer; the arguments are as in ``_unknown``."""
    args = state["args"]
    if args != case.request.tool_call["args"]:
        answer = _edited(answer, args, notice=case.supervision.notice)
    if _in_doubt(case, answer):
        return _unknown(answer, entry_id, sent=sent)
    return {"answer": answer, "unknown": None}


def _of_earlier(case: SupervisedCall, earlier: OpenCall) -> Update:
    """Returns the state of a call of which an earlier one like it is open: its server is asked before a person is."""
    if earlier.task:
        return going_on_update(GoingOn(earlier.task, earlier.id), sent=False)
    return _unknown(case.record().repeats(earlier), earlier.id, sent=False)


async def _input(state: CallState) -> Update:
    """Asks a person the questions of the server."""
    case = get_runtime(SupervisedCall).context
    step_id = case.supervision.step_id
    questions = state.get("questions") or {}
    answers = {key: await ask_for_server(step_id, case.bound.id, one) for key, one in questions.items()}
    return {"questions": None, "answers": answers, "answered": [*state.get("answered", []), *answers]}


async def _follow(state: CallState) -> Update:
    """Waits for the end of the task as which the server works on a call; nothing is sent again."""
    case = get_runtime(SupervisedCall).context
    await case.check(state["args"])
    entry = state.get("open_call")
    sent = state.get("sent", True)
    answer = await _followed(case, entry, held_call(case, state), sent=sent)
    going_on = GoingOn.of(answer, entry)
    if going_on is not None:
        return going_on_update(going_on, sent=sent)
    return {**_answered(case, state, answer, entry, sent=sent), "answers": None}


async def _followed(case: SupervisedCall, entry_id: str | None, held: TaskCall, *, sent: bool) -> ToolMessage:
    """Returns the answer to a call on which its server works as a task, or the questions of the task.

    Args:
        case: The call.
        entry_id: The id of its entry among the open calls.
        held: Its task.
        sent: Whether that is this call, and not an earlier one like it.
    """
    request = _as_checked(case)
    record = case.record()
    async with record.under_way(entry_id):
        with within(TASK, held), _events(case, request, told=held.waits) as finished:
            answer = cast("ToolMessage", finished(await case.send(request)))
    if GoingOn.of(answer, entry_id) is not None:
        return answer
    await record.end(entry_id, answer)
    return answer if sent or _in_doubt(case, answer) else record.of_earlier(answer)


def _as_checked(case: SupervisedCall) -> ToolCallRequest:
    """Returns the request for a call with the arguments that were checked."""
    return case.request.override(tool_call={**case.request.tool_call, "args": dict(case.checked.arguments)})


async def _sent(case: SupervisedCall, held: TaskCall) -> Answer | OpenCall | GoingOn:
    """Sends a call as it was checked, and records it before, until its outcome is known.

    Returns the answer, or how the server goes on with the call; or, if nothing was sent, an earlier call like it whose
    outcome is unknown. ``held`` has answers to questions with which the server has answered the call before.
    """
    checked = case.checked
    request = _as_checked(case)
    record = case.record()
    entry = await record.begin()
    if isinstance(entry, OpenCall | ToolMessage):
        return entry
    async with record.under_way(entry):
        if case.claim is not None and not case.repeatable:
            await case.claim.note_sent()
        with within(CHECKED, checked), within(TASK, held), _events(case, request) as finished:
            answer = finished(await case.send(request))
        going_on = GoingOn.of(answer, entry)
        if going_on is not None:
            case.began = outcome_in(answer).began or time.time()
            if going_on.task:
                await record.note_task(entry, going_on.task)
                return going_on
    # A server that asks first has done nothing yet.
    await record.end(entry, answer)
    return going_on or answer


def _events(
    case: SupervisedCall, request: ToolCallRequest, *, told: bool = True
) -> AbstractContextManager[Callable[[Answer], Answer]]:
    """Tells the stream of a call, if the stream is told of calls."""
    if case.events and told:
        return call_events(request, case.supervision.step_id, began=case.began)
    return nullcontext(_unchanged)


def _unchanged(answer: Answer) -> Answer:
    return answer


def _unknown(answer: ToolMessage, entry_id: str | None, *, sent: bool = True) -> Update:
    """Returns the state of a call with an unknown outcome.

    ``entry_id`` is that of its entry among the open calls, or None; ``sent``: it is this very call.
    """
    about: Update = {"kind": outcome_in(answer).kind, "problem": None, "open_call": entry_id, "sent": sent}
    return {"unknown": answer.text, **about}


async def _settle(state: CallState) -> Update:
    """Asks a person, if there is one; otherwise the call has failed, and is not repeated."""
    case = get_runtime(SupervisedCall).context
    entry = state.get("open_call") or None
    await case.check(state["args"])
    record = case.record()
    unknown = state["unknown"] or ""
    ended = await _ended_meanwhile(case, state)
    if ended is not None:
        return ended
    said = await record.verdict(entry)
    if said == "not-done":
        return {"unknown": None, "approved": None, "problem": None, "wrong": 0, "task": None}
    left = case.said(unknown, kind=state.get("kind", "crash"), effect="unknown")
    if said is None and case.supervision.policy == "never":
        return {"answer": record.left_open(left, entry), "unknown": None}
    try:
        decision = _verdict(case, state, said)
    except (AnswerError, LostSecretError) as error:
        wrong = state.get("wrong", 0) + 1
        if wrong < MOST_WRONG:
            return {"problem": str(error), "wrong": wrong}
        decision = Decision(type="reject")
    if decision.type != "reject":
        await record.settled(entry)
    match decision.type:
        case "edit":
            approved = case.checked.digest
            args = case.edited(decision.args or {})
            again: Update = {"args": args, "unknown": None, "problem": None, "wrong": 0, "task": None}
            again["why"] = state["why"] or unknown
            # With other arguments it is another call, which is shown before it is sent.
            is_same = (await case.check(args)).digest == approved
            return {**again, "approved": approved if is_same else None, "when": time.time()}
        case "respond":
            return {"answer": case.said(decision.message, kind="", effect="reported", error=False), "unknown": None}
        case _:
            return {"answer": record.left_open(left, entry), "unknown": None}


async def _ended_meanwhile(case: SupervisedCall, state: CallState) -> Update | None:
    """Returns the state of a call whose task has ended since a person was asked about it; None if none has."""
    task = state.get("task")
    if not task or case.asked is None:
        return None
    entry = state.get("open_call")
    sent = state.get("sent", True)
    answer = await _followed(case, entry, held_call(case, state, waits=False), sent=sent)
    if _in_doubt(case, answer):
        return None
    return {**_answered(case, state, answer, entry, sent=sent), "task": None}


def _verdict(case: SupervisedCall, state: CallState, said: Verdict | None) -> Decision:
    """Returns what became of a call, by the command that settles it or by the answer to the question.

    Raises as ``ask``.
    """
    if said == "done":
        return Decision(type="respond", message=TOOK_EFFECT)
    more = {"open_call": state.get("open_call") or None, "sent": state.get("sent", True)}
    return case.ask("unknown_outcome", state["unknown"] or "", state["problem"], **more)


def _next(state: CallState) -> str:
    """Returns the next node of a call.

    That is the question on an unknown outcome, the end with an answer, the questions of the server, its task, or the
    server with an approval; otherwise the question whether to send the call.
    """
    if state["unknown"]:
        return "settle"
    if "answer" in state:
        return END
    if state.get("questions"):
        return "input"
    if state.get("task"):
        return "follow"
    return "send" if state["approved"] else "ask"


def _first(state: CallState) -> str:
    """Returns the first node of a call: one that needed no approval may have been sent, and go on at its server."""
    if state.get("questions"):
        return "input"
    return "follow" if state.get("task") else "ask"


def _call_app() -> Any:
    call = StateGraph(CallState, context_schema=SupervisedCall)
    call.add_node("ask", _ask)
    call.add_node("send", _send)
    call.add_node("follow", _follow)
    call.add_node("input", _input)
    call.add_node("settle", _settle)
    call.add_conditional_edges(START, _first, ["ask", "follow", "input"])
    for node in ("ask", "send", "follow", "input", "settle"):
        call.add_conditional_edges(node, _next, ["ask", "send", "follow", "input", "settle", END])
    return call.compile(name="call")


CALL = _call_app()


def _edited(answer: ToolMessage, args: dict[str, Any], *, notice: bool) -> ToolMessage:
    content = answer.content
    if notice and isinstance(content, str):
        content = f"{content}\n\n(A person changed the arguments of this call to {args} before it was made.)"
    answer = with_outcome(answer, outcome_in(answer).model_copy(update={"args": args}))
    return answer.model_copy(update={"content": content})


def check_answerable(supervision: Supervision) -> None:
    """Checks, before a run begins, that its questions can be answered; with ``never``, no questions are expected.

    Raises:
        SettingsError: A call may need approval, and there is no checkpointer.
    """
    registry = supervision.registry
    if checkpointer() is not None:
        return
    for tool_id in registry.catalog.tools:
        assured = registry.assurance(tool_id)
        needed: Refusal | None = None
        if supervision.policy != "never" or assured.rule == "always":
            needed = assured.refusal(supervision.policy)
        if supervision.reviews.get(tool_id):
            needed = PROGRAM_ASKS
        if assured.callable and needed and not supervision.allows(tool_id, assured):
            raise SettingsError(f"{NO_CHECKPOINTER}. One of these tools is {tool_id}: {needed}")


async def examine_call(
    request: ToolCallRequest, bound: BoundTool, supervision: Supervision, send: Send, *, events: bool = False
) -> SupervisedCall:
    """Checks a call, and looks up whether a person has approved its tool.

    Args:
        request: The call, within the conversation.
        bound: Its tool.
        supervision: How the calls of the step are supervised.
        send: Sends the call.
        events: Whether events of the call are written to the custom stream.
    """
    args = bound.form.own(request.tool_call["args"])
    request = request.override(tool_call={**request.tool_call, "args": args})
    # In a thread: validation may take a second.
    checked = await asyncio.to_thread(supervision.registry.check, bound, args, supervision.secrets)
    place = CallPlace.here(request.tool_call["id"] or "")
    case = SupervisedCall(request, bound, supervision, send, checked, place=place, events=events)
    if case.needs_approval():  # a call that needs nobody reads no file
        case.allowed = await asyncio.to_thread(supervision.allows, bound.id, checked.assurance)
    return case


async def make_call(case: SupervisedCall, *, approval: Approval | None = None) -> Answer:
    """Makes one call, after approval if it needs one, and returns its answer.

    If the call was not sent, the answer says why. ``approval`` is an earlier approval by a person, which counts only
    for exactly this call.

    Raises:
        GraphInterrupt: A person is asked.
        ConcurrentRunError: Another run of the thread works on the same step.
    """
    inexact = case.checked.inexact
    if inexact:  # it would be shown in one way, and sent in another
        return case.said(f"{case.named}: the arguments were not sent: {inexact}", kind="refused", effect="none")
    needed = case.needs_approval()
    saver = checkpointer()
    if saver is None and needed:
        return case.said(NO_CHECKPOINTER, kind="refused", effect="none")
    if saver is None:
        return await _without_states(case)
    why = needed.reason if needed else None
    args = dict(case.checked.arguments)
    unsent = CallState(args=args, why=why, approved=None, when=0.0, problem=None, unknown=None)
    going_on: Update = {}
    if not needed and case.repeatable and not (await CALL.aget_state(get_config())).values:
        answer = await _sent(case, held_call(case, unsent))
        if not isinstance(answer, GoingOn):
            return cast("Answer", answer)
        going_on = going_on_update(answer)
    async with sole_run(saver, case.request.tool_call["id"] or "") as case.claim:
        before = await CALL.aget_state(get_config())
        if not before.next and "answer" in before.values:
            return cast("Answer", before.values["answer"])
        _take_up(case, before)
        given = unsent
        if approval is not None:
            given |= {"approved": approval.digest, "when": approval.when}
        done = await CALL.ainvoke({**given, **going_on}, context=case, durability="sync")
        return cast("Answer", done["answer"])


async def _without_states(case: SupervisedCall) -> Answer:
    """Makes a call that needs no approval where nothing can be stored, so that nobody can be asked later."""
    answer = await _sent(case, TaskCall())
    match answer:
        case OpenCall() if not answer.task:
            return case.record().left_open(case.record().repeats(answer), answer.id)
        case OpenCall():
            return await _followed(case, answer.id, TaskCall(answer.task), sent=False)
        case GoingOn():
            return await _followed(case, answer.entry_id, TaskCall(answer.task, answer.interval), sent=True)
    return answer


def _take_up(case: SupervisedCall, before: StateSnapshot) -> None:
    """Notes what an earlier run of the call has left: its question, or that it was sent without an answer."""
    waiting = [found.value for task in before.tasks for found in task.interrupts]
    marks = [value["hash"] for value in waiting if isinstance(value, dict) and isinstance(value.get("hash"), str)]
    case.asked = marks[0] if marks else None
    not_sent = before.next == ("ask",) or not before.values
    rolled_back = not_sent and case.claim is not None and case.claim.sent_before
    case.cut_off = ((before.next == ("send",) and not waiting) or rolled_back) and not case.repeatable
