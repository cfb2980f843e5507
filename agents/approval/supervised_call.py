"""Supervision of a call: ask for approval, send it, and settle an unknown outcome.

Each call that may need approval, or must not be sent twice, runs as a small app inside the worker's tool node. Each
checkpoint is written before the next node starts, whatever the durability of the run. So a decision is stored before
anything is sent, and a call that was running when the program died is recognised.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NotRequired, cast

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, StateSnapshot, interrupt
from typing_extensions import TypedDict

from callsheet.agents.approval.call_record import NOWHERE, CallPlace, CallRecord
from callsheet.agents.approval.questions import MOST_WRONG, OFFERED, Kind, fingerprint
from callsheet.agents.approval.supervision import Supervision
from callsheet.agents.calls.call_context import within
from callsheet.agents.calls.question_text import inexact, shown_text, shown_value
from callsheet.agents.calls.review import (
    TOOK_EFFECT,
    AnswerError,
    Decision,
    read_decision,
    review_answers,
    review_request,
)
from callsheet.agents.calls.run_claim import Claim, checkpointer, sole_run
from callsheet.agents.calls.tool_result import answer_to, artifact_of
from callsheet.agents.registry.binding import BoundTool
from callsheet.agents.registry.tool_registry import AGREED, Assurance, ToolRegistry
from callsheet.agents.safety.arguments import Fit, fit_of
from callsheet.agents.safety.secrets import LostSecretError
from callsheet.graphs.catalog.formats.server_config import ApprovalPolicy
from callsheet.graphs.errors import CallsheetError, SettingsError
from callsheet.graphs.text.json_schema import shown_form
from callsheet.graphs.trust.open_calls import OpenCall, Verdict

Answer = ToolMessage | Command[Any]
Send = Callable[[ToolCallRequest], Awaitable[Answer]]
NOBODY = "it needs approval, and nobody can be asked here: run the graph supervisor in a thread"
"""The message of a program that refuses calls because there is no person."""
_PROGRAM_ASKS = "The program asks before every call of this tool."
_CUT_OFF = "it was running when the program stopped or the run was rolled back; whether it took effect is unknown"
# Seconds for which an approval is valid; a tool that interrupts by itself may wait for longer.
_GOOD_FOR = 600.0
NO_CHECKPOINTER = (
    "some tools need approval before a call, and approval needs a checkpointer. Compile the workflow with one, "
    "compile(checkpointer=InMemorySaver()); on a LangGraph server, run it in a thread. Or allow the tools by name, "
    'Settings(allow=("agent/tool",)), or turn approval off, Settings(approval="never")'
)


@dataclass(slots=True)
class SupervisedCall:
    """Objects of a call that no checkpoint can hold.

    Attributes:
        allowed: Whether a person has allowed the tool by name.
        asked: The hash in the pending question; empty without one.
        cut_off: Whether the call was running when the program stopped, or its run was rolled back.
        claim: The claim of the run; None without a checkpointer.
        place: Where the call is made, by which a resumed run finds what is recorded of it.
    """

    request: ToolCallRequest
    bound: BoundTool
    supervision: Supervision
    send: Send
    allowed: bool = False
    asked: str = ""
    cut_off: bool = False
    claim: Claim | None = None
    place: CallPlace = NOWHERE

    @property
    def named(self) -> str:
        """Agent and tool, as at the start of every error of a call."""
        return f"agent {self.bound.agent!r}, tool {self.bound.id.removeprefix(f'{self.bound.agent}/')!r}"

    @property
    def registry(self) -> ToolRegistry:
        """The tools and their hints."""
        return self.supervision.registry

    @property
    def assured(self) -> Assurance:
        """What is known about the tool."""
        return self.registry.assurance(self.bound.id)

    def doubt(self, policy: ApprovalPolicy) -> str:
        """Returns why calls of the tool need approval, as a sentence; empty if they need none.

        The program's ``interrupt_on`` counts first, then a person's yes to the tool by name, then ``approval``.
        """
        assured, supervision = self.assured, self.supervision
        if supervision.reviews.get(self.bound.id):
            return assured.doubt or _PROGRAM_ASKS
        if self.allowed:
            return ""
        if supervision.confirms and (why := assured.confirm):
            return why
        return assured.why(policy)

    def why(self, args: Mapping[str, Any]) -> str:
        """Returns why a call with these arguments needs approval, in sentences; empty if it needs none."""
        doubt = self.doubt(self.supervision.policy)
        if not doubt and self.supervision.policy == "never":
            return ""
        return " ".join(filter(None, (doubt, self.unchecked(args))))

    def unchecked(self, args: Mapping[str, Any]) -> str:
        """Returns why these arguments could not be validated, as a sentence; empty if they were."""
        told = str(self.supervision.secrets.hidden(self._fit(args).unchecked))
        return told and f"{told[0].upper()}{told[1:]}."

    def _fit(self, args: Mapping[str, Any]) -> Fit:
        try:
            return self.registry.fit(self.bound.id, self.supervision.secrets.opened(self.bound.form.plain, args))
        except LostSecretError:
            return Fit()  # it is refused when it is sent

    def mark(self, args: Mapping[str, Any]) -> str:
        """Returns the fingerprint that an approval is bound to."""
        return fingerprint(self.bound.id, self.registry.pin(self.bound.id), args)

    def record(self, args: Mapping[str, Any]) -> CallRecord:
        """Returns the record of the call with these arguments."""
        ledger = None if self.assured.repeatable else self.supervision.ledger
        return CallRecord.of(ledger, self.bound, args, self.place, self.named, self.said)

    async def asks(self, args: Mapping[str, Any]) -> bool:
        """Returns whether a person has to be asked before the call is sent."""
        return bool(self.why(args)) or await self.record(args).is_repeated()

    def ask(self, kind: Kind, args: Mapping[str, Any], why: str, problem: str, **more: Any) -> tuple[Decision, str]:
        """Returns a person's decision, and the fingerprint of the call that it is about.

        ``more`` are further fields of the question: ``open_call``, the id of the call whose outcome is unknown, and
        ``sent``, whether it is this very call.

        Raises:
            AnswerError: It is invalid or about another call, or edited arguments do not fit.
        """
        bound, supervision, mark = self.bound, self.supervision, self.mark(args)
        name, call_id = self.request.tool_call["name"], self.request.tool_call["id"] or ""
        about: dict[str, Any] = {"step_id": supervision.step_id, "agent": bound.agent, "tool": bound.id, "why": why}
        about |= {"hash": mark, "tool_call_id": call_id, "problem": problem or None, "shown": shown_value(args), **more}
        words, approval = OFFERED[kind], kind == "tool_approval"
        if approval:
            words = supervision.reviews.get(bound.id) or words
            about |= {"unchecked": self.unchecked(args) or None, "confirm": bool(self.doubt("never")) or None}
            about["always"] = self.remembers or None
        shown = review_request(kind, name, args, self.description(kind, why, **more), words, **about)
        form = review_answers(name, words, shown_form(bound.form.plain), always=approval and self.remembers)
        given = interrupt(shown, response_schema=form)
        self._check_asked(mark)
        answer = read_decision(given, name, words)
        if answer.hash not in (None, mark):
            raise AnswerError("the answer has the hash of another call: look at this one again")
        if answer.always and not (approval and answer.type == "approve" and self.remembers):
            raise AnswerError('"always" is not offered here: approve without it')
        if answer.args is not None:
            self._check_edited(answer.args)
        return answer, mark

    def _check_asked(self, mark: str) -> None:
        """Raises an ``AnswerError`` if the question that was answered is not about the call as it is now."""
        asked, self.asked = self.asked, ""
        if not asked:  # an answer without an id, whose own question nobody asks any more, comes to whoever asks next
            raise AnswerError("the last answer was for another question: look at this call")
        if asked != mark:
            raise AnswerError("the tool's definition has changed since this was asked: look at the call again")

    def _check_edited(self, args: Mapping[str, Any]) -> None:
        """Raises an ``AnswerError`` if arguments that a person has edited cannot be sent exactly, or do not fit."""
        if problem := inexact(args):
            raise AnswerError(problem)
        secrets, tool = self.supervision.secrets, self.registry.catalog.tools.get(self.bound.id)
        opened = secrets.opened(self.bound.form.plain, args)
        if tool and (problem := fit_of(tool.input_schema, opened).misfit):
            raise AnswerError(secrets.hidden(problem))

    def description(self, kind: Kind, why: str, *, sent: bool = True, open_call: str | None = None) -> str:
        """Returns what a person reads first about a call."""
        who = f"Step {self.supervision.step_id}" if self.supervision.step_id else "The agent"
        why_asked = f"{self.bound.id}: {why.removesuffix('.')}."
        if kind == "unknown_outcome":
            effect = "Respond if it took effect; edit to send it again; reject to leave it."
            if open_call and (ledger := self.supervision.ledger):
                effect += f" Or say what became of it with {ledger.how_to_settle(open_call)}, and resume."
            return shown_text(f"{who} {'has called' if sent else 'wants to call'} {why_asked} {effect}")
        return shown_text(f"{who} wants to call {why_asked}")

    @property
    def remembers(self) -> bool:
        """Whether the tool can be approved for good: the program does not ask before each call."""
        return self.supervision.standing is not None and self.bound.id not in self.supervision.reviews

    async def remember(self) -> None:
        """Stores that the user has approved the tool for good; ``AnswerError``: it cannot be stored."""
        standing, tool_id = self.supervision.standing, self.bound.id
        try:
            if standing is not None and (tool := self.registry.catalog.tools.get(tool_id)):
                await asyncio.to_thread(standing.add, tool, self.registry.pin(tool_id))
        except (CallsheetError, OSError) as error:
            raise AnswerError(f'"always" was not stored, so nothing was sent: {error}') from error

    def refused(self, args: Mapping[str, Any]) -> ToolMessage | None:
        """The refusal of a call that nobody can approve: its tool is no longer there, or the arguments do not fit."""
        if self.bound.id in self.registry.catalog.tools:
            why = str(self.supervision.secrets.hidden(self._fit(args).misfit))
        else:
            why = self.registry.refused([self.bound.id]).get(self.bound.id, "")
        return self.said(f"{self.named}: {why}", kind="refused", effect="none") if why else None

    def rejected_by(self, decision: Decision) -> ToolMessage:
        """The message for a call that a person rejected, or that a program did because nobody could be asked."""
        reason = f": {decision.message}" if decision.message else ""
        return self.rejected(NOBODY if decision.message == NOBODY else f"a person refused this call{reason}")

    def rejected(self, why: str) -> ToolMessage:
        """Returns the message for a call that a person did not agree to."""
        told = f"{self.named}: {why}. Nothing was sent. Do not try it in another way"
        return self.said(told, kind="rejected", effect="none")

    def said(self, text: str, *, kind: str, effect: str, error: bool = True) -> ToolMessage:
        """Returns a message for the model that is not the tool's own answer."""
        about = {"tool": self.bound.id, "kind": kind, "effect": effect, "seconds": 0.0}
        return answer_to(self.request.tool_call, text, about, error=error)


class Approval(NamedTuple):
    """An approval: the ``fingerprint`` of a call, and when it was given, in seconds since the epoch."""

    mark: str
    when: float


class CallState(TypedDict):
    """State of a call.

    Attributes:
        why: Why it needs approval; empty if it needs none.
        approved: The ``fingerprint`` that was approved, at ``when`` (in seconds since the epoch).
        unknown: What is known about a call with unknown outcome; empty for others.
        open_call: The id of its entry among the open calls; ``sent``: whether it is this very call.
        wrong: Number of answers in a row that were none.
    """

    args: dict[str, Any]
    why: str
    approved: str
    when: float
    problem: str
    unknown: str
    wrong: NotRequired[int]
    kind: NotRequired[str]
    open_call: NotRequired[str]
    sent: NotRequired[bool]
    answer: NotRequired[Any]


_Update = dict[str, Any]


async def _ask(state: CallState) -> _Update:
    case = get_runtime(SupervisedCall).context
    if refused := case.refused(state["args"]):
        return {"answer": refused}
    if state["approved"] and state["approved"] == case.mark(state["args"]):
        return {"when": state["when"]}  # a person has seen this call among those of its program
    if not state["why"]:
        return {"approved": case.mark(state["args"]), "when": time.time()}
    record = case.record(state["args"])
    match await record.earlier():
        case ToolMessage() as answer:
            return {"answer": answer}
        case OpenCall() as earlier:
            return _unknown(record.repeats(earlier), earlier.id, sent=False)
    try:
        decision, mark = case.ask("tool_approval", state["args"], state["why"], state["problem"])
        if decision.always:
            await case.remember()
    except (AnswerError, LostSecretError) as error:
        if (wrong := state.get("wrong", 0) + 1) < MOST_WRONG:
            return {"problem": str(error), "wrong": wrong}
        return {"answer": case.rejected(f"it was asked about {wrong} times, and not answered ({error})")}
    return {"wrong": 0, **_decided(decision, mark, case)}


def _decided(decision: Decision, mark: str, case: SupervisedCall) -> _Update:
    match decision.type:
        case "approve":
            return {"approved": mark, "when": time.time(), "problem": ""}
        case "edit":
            args = case.supervision.secrets.masked(case.bound.form.plain, decision.args or {})
            # Asks again in any case; without a new reason, with the old one.
            return {"args": args, "problem": "", **({"why": why} if (why := case.why(args)) else {})}
        case "reject":
            return {"answer": case.rejected_by(decision)}
        case "respond":
            return {"answer": case.said(decision.message, kind="", effect="none", error=False)}


async def _send(state: CallState) -> _Update:
    case, args = get_runtime(SupervisedCall).context, state["args"]
    record = case.record(args)
    if case.cut_off:
        case.cut_off = False
        said = case.said(f"{case.named}: {_CUT_OFF}", kind="crash", effect="unknown")
        return _unknown(said, await record.own())
    if state["why"] and (state["approved"] != case.mark(args) or time.time() - state["when"] > _GOOD_FOR):
        return {"approved": "", "problem": "the approval is too old, or the tool's definition has changed since"}
    request, repeatable = case.request, case.assured.repeatable

    async def send() -> Answer:
        if case.claim is not None and not repeatable:
            await case.claim.note_sent()
        with within(AGREED, bool(state["why"])):
            return await case.send(request.override(tool_call={**request.tool_call, "args": args}))

    answer = await record.sent(send)
    if isinstance(answer, OpenCall):
        return _unknown(record.repeats(answer), answer.id, sent=False)
    if isinstance(answer, ToolMessage):
        if args != request.tool_call["args"]:
            answer = _edited(answer, args, notice=case.supervision.notice)
        if answer.status == "error" and artifact_of(answer).get("effect") == "unknown" and not repeatable:
            return _unknown(answer, await record.own())
    return {"answer": answer, "unknown": ""}


def _unknown(answer: ToolMessage, entry_id: str, *, sent: bool = True) -> _Update:
    """Returns the state of a call with an unknown outcome.

    ``entry_id`` is that of its entry among the open calls, or empty; ``sent``: it is this very call.
    """
    return {"unknown": answer.text, "kind": answer.artifact["kind"], "problem": "", "open_call": entry_id, "sent": sent}


async def _settle(state: CallState) -> _Update:
    """Asks a person, if there is one; otherwise the call has failed, and is not repeated."""
    case, entry = get_runtime(SupervisedCall).context, state.get("open_call", "")
    record = case.record(state["args"])
    said = await record.verdict(entry)
    if said == "not-done":
        return {"unknown": "", "approved": "", "problem": "", "wrong": 0}
    left = case.said(state["unknown"], kind=state.get("kind", "crash"), effect="unknown")
    if said is None and case.supervision.policy == "never":
        return {"answer": record.left_open(left, entry), "unknown": ""}
    try:
        decision, mark = _verdict(case, state, said)
    except (AnswerError, LostSecretError) as error:
        if (wrong := state.get("wrong", 0) + 1) < MOST_WRONG:
            return {"problem": str(error), "wrong": wrong}
        decision, mark = Decision(type="reject"), ""
    if decision.type != "reject":
        await record.settled(entry)
    match decision.type:
        case "edit":
            args = case.supervision.secrets.masked(case.bound.form.plain, decision.args or {})
            again = {"args": args, "unknown": "", "problem": "", "wrong": 0, "why": state["why"] or state["unknown"]}
            # With other arguments it is another call, which is shown before it is sent.
            return {**again, "approved": mark if case.mark(args) == mark else "", "when": time.time()}
        case "respond":
            return {"answer": case.said(decision.message, kind="", effect="reported", error=False), "unknown": ""}
        case _:
            return {"answer": record.left_open(left, entry), "unknown": ""}


def _verdict(case: SupervisedCall, state: CallState, said: Verdict | None) -> tuple[Decision, str]:
    """Returns what became of a call, by the command that settles it or by the answer to the question.

    Raises as ``ask``.
    """
    if said == "done":
        return Decision(type="respond", message=TOOK_EFFECT), ""
    more = {"open_call": state.get("open_call") or None, "sent": state.get("sent", True)}
    return case.ask("unknown_outcome", state["args"], state["unknown"], state["problem"], **more)


def _next(state: CallState) -> str:
    """To the question on an unknown outcome, to the end with an answer, to the server with an approval, or to ask."""
    return "settle" if state["unknown"] else END if "answer" in state else "send" if state["approved"] else "ask"


def _call_app() -> Any:
    call = StateGraph(CallState, context_schema=SupervisedCall)
    call.add_node("ask", _ask)
    call.add_node("send", _send)
    call.add_node("settle", _settle)
    call.add_edge(START, "ask")
    for node in ("ask", "send", "settle"):
        call.add_conditional_edges(node, _next, ["ask", "send", "settle", END])
    return call.compile(name="call")


CALL = _call_app()


def _edited(answer: ToolMessage, args: Mapping[str, Any], *, notice: bool) -> ToolMessage:
    content = answer.content
    if notice and isinstance(content, str):
        content = f"{content}\n\n(A person changed the arguments of this call to {dict(args)} before it was made.)"
    return answer.model_copy(update={"content": content, "artifact": {**artifact_of(answer), "args": dict(args)}})


def check_answerable(supervision: Supervision) -> None:
    """Checks that the questions of a run can be answered, before it begins; with ``never``, none are expected.

    Raises:
        SettingsError: A call may need approval, and there is no checkpointer.
    """
    registry = supervision.registry
    if checkpointer() is not None:
        return
    for tool_id in registry.catalog.tools:
        assured = registry.assurance(tool_id)
        why = assured.why(supervision.policy) if supervision.policy != "never" or assured.rule == "always" else ""
        why = _PROGRAM_ASKS if supervision.reviews.get(tool_id) else why
        if assured.callable and why and not supervision.allows(tool_id):
            raise SettingsError(f"{NO_CHECKPOINTER}. One of these tools is {tool_id}: {why}")


async def examined(request: ToolCallRequest, bound: BoundTool, supervision: Supervision, send: Send) -> SupervisedCall:
    """Returns a call, with what a person has said of its tool."""
    case = SupervisedCall(request, bound, supervision, send, place=CallPlace.here(request.tool_call["id"] or ""))
    if case.why(request.tool_call["args"]):  # a call that needs nobody reads no file
        case.allowed = await asyncio.to_thread(supervision.allows, bound.id)
    return case


async def supervised(
    request: ToolCallRequest,
    bound: BoundTool,
    supervision: Supervision,
    send: Send,
    *,
    approval: Approval | None = None,
) -> Answer:
    """Returns the answer of one call, after approval if it needs one; or a message that says why it was not sent.

    ``approval`` is one that a person has given before, which counts if it is of exactly this call.

    Raises:
        GraphInterrupt: A person is asked.
        ConcurrentRunError: Another run of the thread works on the same step.
    """
    case = await examined(request, bound, supervision, send)
    if trouble := inexact(request.tool_call["args"]):  # it would be shown in one way, and sent in another
        return case.said(f"{case.named}: the arguments were not sent: {trouble}", kind="refused", effect="none")
    why = case.why(request.tool_call["args"])
    saver = checkpointer()
    if saver is None:
        return case.said(NO_CHECKPOINTER, kind="refused", effect="none") if why else await _unasked(case)
    if not why and case.assured.repeatable and not (await CALL.aget_state(get_config())).values:
        return await send(request)
    async with sole_run(saver, request.tool_call["id"] or "") as case.claim:
        return await _watched(case, why, approval)


async def _unasked(case: SupervisedCall) -> Answer:
    """Sends a call in a run that cannot wait for a person."""
    record = case.record(case.request.tool_call["args"])
    answer = await record.sent(lambda: case.send(case.request))
    return record.left_open(record.repeats(answer), answer.id) if isinstance(answer, OpenCall) else answer


async def _watched(case: SupervisedCall, why: str, approval: Approval | None) -> Answer:
    before = await CALL.aget_state(get_config())
    if not before.next and "answer" in before.values:
        return cast("Answer", before.values["answer"])
    case.asked, asked = _asked(before)
    not_sent = before.next == ("ask",) or not before.values
    rolled_back = not_sent and case.claim is not None and case.claim.sent_before
    case.cut_off = ((before.next == ("send",) and not asked) or rolled_back) and not case.assured.repeatable
    args = dict(case.request.tool_call["args"])
    given = CallState(args=args, why=why, approved="", when=0.0, problem="", unknown="")
    if approval is not None:
        given |= {"approved": approval.mark, "when": approval.when}
    done = await CALL.ainvoke(given, context=case, durability="sync")
    return cast("Answer", done["answer"])


def _asked(before: StateSnapshot) -> tuple[str, bool]:
    """Returns the hash in the pending question, and whether there is a pending question at all."""
    waiting = [found.value for task in before.tasks for found in task.interrupts]
    marks = [value["hash"] for value in waiting if isinstance(value, dict) and isinstance(value.get("hash"), str)]
    return (marks[0] if marks else ""), bool(waiting)
