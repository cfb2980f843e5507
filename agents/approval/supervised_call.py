"""One supervised call as a small app: ask for approval, send, settle an unknown outcome."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NotRequired

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from callsheet.agents.approval.assurance import ApprovalPolicy
from callsheet.agents.approval.decisions import (
    AnswerError,
    Decision,
    Kind,
    Verdict,
    answer_schema,
    fingerprint,
    question,
    read_decision,
    read_verdict,
)
from callsheet.agents.safety.arguments import fit_of
from callsheet.agents.safety.definition_check import AGREED
from callsheet.agents.safety.secrets import LostSecretError, RunSecrets
from callsheet.agents.tools.binding import BoundTool
from callsheet.agents.tools.registry import ToolRegistry

Answer = ToolMessage | Command[Any]
Send = Callable[[ToolCallRequest], Awaitable[Answer]]
_CUT_OFF = "it was running when the program stopped; whether it took effect is unknown"
# Seconds for which an approval is valid; a tool that interrupts by itself may wait for longer.
_GOOD_FOR = 600.0


@dataclass(frozen=True, slots=True)
class Supervision:
    """How the calls of one step are supervised.

    Attributes:
        step_id: The step.
        policy: Which calls need approval.
        registry: The tools and their hints.
        secrets: Holds secret arguments.
        notice: Whether the model is told that a person changed its arguments.
        by_rules: Whether rules choose the calls, without a model.
    """

    step_id: str
    policy: ApprovalPolicy
    registry: ToolRegistry
    secrets: RunSecrets = field(default_factory=RunSecrets)
    notice: bool = True
    by_rules: bool = False


class CallState(TypedDict):
    """State of a call.

    Attributes:
        args: The arguments.
        why: Why it needs approval; empty if it needs none.
        approved: The ``fingerprint`` that was approved.
        when: Time of the approval, in seconds since the epoch.
        problem: What was wrong with the last answer.
        unknown: What is known about a call with unknown outcome; empty for others.
        kind: The kind of error.
        answer: The message for the model.
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


@dataclass(slots=True)
class Case:
    """Objects of a call that no checkpoint can hold.

    Attributes:
        request: The call.
        bound: The tool.
        supervision: How the call is supervised.
        send: Sends the call.
        asked: The hash in the pending question; empty without one.
        cut_off: Whether the call was running when the program stopped.
    """

    request: ToolCallRequest
    bound: BoundTool
    supervision: Supervision
    send: Send
    asked: str = ""
    cut_off: bool = False

    @property
    def named(self) -> str:
        """Agent and tool, as at the start of every error of a call."""
        return f"agent {self.bound.agent!r}, tool {self.bound.id.removeprefix(f'{self.bound.agent}/')!r}"

    def why(self, args: Mapping[str, Any]) -> str:
        """Why a call with these arguments needs approval; empty if it needs none."""
        policy = self.supervision.policy
        doubt = self.supervision.registry.assurance(self.bound.id).why(policy, by_rules=self.supervision.by_rules)
        asks = doubt or policy != "never"
        return "; ".join(filter(None, (doubt, self.unchecked(args)))) if asks else ""

    def unchecked(self, args: Mapping[str, Any]) -> str:
        """Why these arguments could not be validated; empty if they were."""
        registry, secrets = self.supervision.registry, self.supervision.secrets
        try:
            opened = secrets.opened(registry.schema(self.bound.id), args)
        except LostSecretError:
            return ""  # it is refused when it is sent
        return str(secrets.hidden(registry.unchecked(self.bound.id, opened)))

    def mark(self, args: Mapping[str, Any]) -> str:
        """The fingerprint that an approval is bound to."""
        return fingerprint(self.bound.id, self.supervision.registry.pin(self.bound.id), args)

    def ask(self, kind: Kind, state: CallState, why: str) -> tuple[Any, str]:
        """A person's answer, and the fingerprint of the call that it is about."""
        mark = self.mark(state["args"])
        told = {"step_id": self.supervision.step_id, "why": why, "mark": mark, "problem": state["problem"]}
        unchecked = self.unchecked(state["args"]) if kind == "tool_approval" else ""
        shown = question(kind, self.request.tool_call, self.bound, state["args"], **told, unchecked=unchecked)
        schema = self.bound.args_schema
        answer = interrupt(shown, response_schema=answer_schema(kind, schema if isinstance(schema, dict) else {}))
        if self.asked not in ("", mark):
            raise AnswerError("the tool's definition has changed since this was asked: look at the call again")
        return answer, mark

    def check(self, answer: Decision | Verdict, mark: str) -> None:
        """Checks that an answer is about this call, and that edited arguments fit.

        Raises:
            AnswerError: It is not, or they do not.
        """
        if answer.hash not in (None, mark):
            raise AnswerError("the answer's hash is that of another call: look at this one again")
        if isinstance(answer, Decision) and answer.args is not None:
            schema, secrets = self.supervision.registry.schema(self.bound.id), self.supervision.secrets
            if trouble := fit_of(schema, secrets.opened(schema, answer.args)).misfit:
                raise AnswerError(secrets.hidden(trouble))

    def refused(self) -> ToolMessage | None:
        """The refusal of a call whose tool is no longer in the catalog; None if it is there."""
        registry = self.supervision.registry
        if self.bound.id in registry.catalog.tools or not (why := registry.refused([self.bound.id]).get(self.bound.id)):
            return None
        return self.said(f"{self.named}: {why}", kind="refused", effect="none")

    def said(self, text: str, *, kind: str, effect: str, error: bool = True) -> ToolMessage:
        """A message for the model that is not the tool's own answer."""
        return ToolMessage(
            text,
            name=self.request.tool_call["name"],
            tool_call_id=self.request.tool_call["id"] or "",
            status="error" if error else "success",
            artifact={"tool": self.bound.id, "kind": kind, "effect": effect, "seconds": 0.0},
        )


async def _ask(state: CallState) -> _Update:
    case = get_runtime(Case).context
    if refused := case.refused():
        return {"answer": refused}
    if not state["why"]:
        return {"approved": case.mark(state["args"]), "when": time.time()}
    try:
        answer, mark = case.ask("tool_approval", state, state["why"])
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
            reason = f": {decision.message}" if decision.message else ""
            told = f"{case.named}: a person refused this call{reason}. Nothing was sent. Do not try it in another way"
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
    agreed = AGREED.set(bool(state["why"]))
    try:
        answer = await case.send(request.override(tool_call={**request.tool_call, "args": args}))
    finally:
        AGREED.reset(agreed)
    if isinstance(answer, ToolMessage):
        if args != request.tool_call["args"]:
            answer = _edited(answer, args, notice=case.supervision.notice)
        if _effect(answer) == "unknown" and not case.supervision.registry.assurance(case.bound.id).repeatable:
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
        answer, mark = case.ask("unknown_outcome", state, state["unknown"])
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
