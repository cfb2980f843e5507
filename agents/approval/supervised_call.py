"""One supervised call as a small app: ask for approval, send, settle an unknown outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NotRequired

from langchain_core.messages import ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from callsheet.agents.approval.call_case import Case
from callsheet.agents.approval.decisions import AnswerError, Decision, read_decision, read_verdict
from callsheet.agents.safety.definition_check import AGREED
from callsheet.agents.safety.secrets import LostSecretError

NOBODY = "it needs approval, and nobody can be asked here: run the graph supervisor in a thread"
"""The message of a program that refuses calls because there is no person."""
_CUT_OFF = "it was running when the program stopped or the run was rolled back; whether it took effect is unknown"
# Seconds for which an approval is valid; a tool that interrupts by itself may wait for longer.
_GOOD_FOR = 600.0


class CallState(TypedDict):
    """State of a call.

    Attributes:
        why: Why it needs approval; empty if it needs none.
        approved: The ``fingerprint`` that was approved.
        when: Time of the approval, in seconds since the epoch.
        unknown: What is known about a call with unknown outcome; empty for others.
    """

    args: dict[str, Any]
    why: str
    approved: str
    when: float
    problem: str
    unknown: str
    kind: NotRequired[str]
    answer: NotRequired[Any]


_Update = dict[str, Any]


async def _ask(state: CallState) -> _Update:
    case = get_runtime(Case).context
    if refused := case.refused(state["args"]):
        return {"answer": refused}
    if not state["why"]:
        return {"approved": case.mark(state["args"]), "when": time.time()}
    try:
        answer, mark = case.ask("tool_approval", state["args"], state["why"], state["problem"])
        decision = read_decision(answer, case.request.tool_call["name"])
        case.check(decision, mark)
    except (AnswerError, LostSecretError) as error:
        return {"problem": str(error)}
    finally:
        case.asked = ""
    return _decided(decision, mark, case)


def _decided(decision: Decision, mark: str, case: Case) -> _Update:
    match decision.type:
        case "approve":
            return {"approved": mark, "when": time.time(), "problem": ""}
        case "edit":
            schema = case.supervision.registry.schema(case.bound.id)
            args = case.supervision.secrets.masked(schema, decision.args or {})
            # Asks again in any case; without a new reason, with the old one.
            return {"args": args, "problem": "", **({"why": why} if (why := case.why(args)) else {})}
        case "reject":
            why = "a person refused this call" + f": {decision.message}" * bool(decision.message)
            why = decision.message if decision.message == NOBODY else why
            told = f"{case.named}: {why}. Nothing was sent. Do not try it in another way"
            return {"answer": case.said(told, kind="rejected", effect="none")}
        case "respond":
            return {"answer": case.said(decision.message, kind="", effect="none", error=False)}


async def _send(state: CallState) -> _Update:
    case, args = get_runtime(Case).context, state["args"]
    if case.cut_off:
        case.cut_off = False
        what = f"{case.named}: {_CUT_OFF}"
        return _unknown(case, case.said(what, kind="crash", effect="unknown"))
    if state["why"] and (state["approved"] != case.mark(args) or time.time() - state["when"] > _GOOD_FOR):
        return {"approved": "", "problem": "the approval is too old, or the tool's definition has changed since"}
    request = case.request
    repeatable = case.supervision.registry.assurance(case.bound.id).repeatable
    if case.claim is not None and not repeatable:
        await case.claim.note_sent()
    agreed = AGREED.set(bool(state["why"]))
    try:
        answer = await case.send(request.override(tool_call={**request.tool_call, "args": args}))
    finally:
        AGREED.reset(agreed)
    if isinstance(answer, ToolMessage):
        if args != request.tool_call["args"]:
            answer = _edited(answer, args, notice=case.supervision.notice)
        if _effect(answer) == "unknown" and not repeatable:
            return _unknown(case, answer)
    return {"answer": answer, "unknown": ""}


def _unknown(case: Case, answer: ToolMessage) -> _Update:
    """Asks a person, if there is one; otherwise the call has failed, and is not repeated."""
    if case.supervision.policy != "never":
        return {"unknown": answer.text, "kind": answer.artifact["kind"], "problem": ""}
    return {"answer": answer, "unknown": ""}


async def _settle(state: CallState) -> _Update:
    case = get_runtime(Case).context
    try:
        answer, mark = case.ask("unknown_outcome", state["args"], state["unknown"], state["problem"])
        verdict = read_verdict(answer)
        case.check(verdict, mark)
    except (AnswerError, LostSecretError) as error:
        return {"problem": str(error)}
    finally:
        case.asked = ""
    match verdict.type:
        case "not_done":
            return {"unknown": "", "problem": "", "approved": mark, "when": time.time()}
        case "done":
            told = verdict.message or "A person says that this call took effect; what it answered is not known."
            return {"answer": case.said(told, kind="", effect="reported", error=False), "unknown": ""}
        case "give_up":
            kind = state.get("kind", "crash")
            return {"answer": case.said(state["unknown"], kind=kind, effect="unknown"), "unknown": ""}


def _after_ask(state: CallState) -> str:
    return END if "answer" in state else "send" if state["approved"] else "ask"


def _after_send(state: CallState) -> str:
    return "settle" if state["unknown"] else END if "answer" in state else "ask"


def _after_settle(state: CallState) -> str:
    return "settle" if state["unknown"] else END if "answer" in state else "send"


def _call_app() -> Any:
    call = StateGraph(CallState, context_schema=Case)
    call.add_node("ask", _ask)
    call.add_node("send", _send)
    call.add_node("settle", _settle)
    call.add_edge(START, "ask")
    call.add_conditional_edges("ask", _after_ask, ["ask", "send", END])
    call.add_conditional_edges("send", _after_send, ["ask", "settle", END])
    call.add_conditional_edges("settle", _after_settle, ["send", "settle", END])
    return call.compile(name="call")


CALL = _call_app()


def _effect(message: ToolMessage) -> str:
    artifact = message.artifact if isinstance(message.artifact, dict) else {}
    return str(artifact.get("effect") or "") if message.status == "error" else ""


def _edited(answer: ToolMessage, args: Mapping[str, Any], *, notice: bool) -> ToolMessage:
    artifact = answer.artifact if isinstance(answer.artifact, dict) else {}
    content = answer.content
    if notice and isinstance(content, str):
        content = f"{content}\n\n(A person changed the arguments of this call to {dict(args)} before it was made.)"
    return answer.model_copy(update={"content": content, "artifact": {**artifact, "args": dict(args)}})
