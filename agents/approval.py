"""A call on its way: asked about, sent, and settled where nobody knows what became of it.

Each call that may need a person, or must not be sent twice, runs as a small app of its own inside the worker's tool
node. Its checkpoints are written before the next of its nodes starts, whatever the durability of the run: what was
decided is kept before anything is sent, and a call that was under way when the program died is known as such.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, StateSnapshot, interrupt
from typing_extensions import NotRequired, TypedDict

from callsheet.agents.arguments import misfit
from callsheet.agents.assurance import ApprovalPolicy
from callsheet.agents.bound import BoundTool
from callsheet.agents.checkpoints import checkpointer
from callsheet.agents.decisions import (
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
from callsheet.agents.registry import ToolRegistry
from callsheet.graphs.errors import SettingsError

Answer = ToolMessage | Command[Any]
Send = Callable[[ToolCallRequest], Awaitable[Answer]]
NO_CHECKPOINTER = (
    "a person has to be asked before some tools are called, which needs a checkpointer: compile the workflow with one, "
    'compile(checkpointer=InMemorySaver()), or ask nobody: Settings(approval="never")'
)
_CUT_OFF = "it was under way when the program was stopped, and whether it took effect is unknown"
_GOOD_FOR = 600.0


@dataclass(frozen=True, slots=True)
class Supervision:
    """How the calls of one step are looked after.

    Attributes:
        step_id: The step.
        policy: Which calls a person is asked about.
        registry: Knows the tools, and what may be believed of them.
        notice: Whether the model is told that a person changed its arguments.
    """

    step_id: str
    policy: ApprovalPolicy
    registry: ToolRegistry
    notice: bool = True


class _Call(TypedDict):
    """What is kept of a call.

    Attributes:
        args: What it is called with.
        why: Why a person is asked; empty if none is.
        approved: The ``fingerprint`` that was approved.
        when: When that was, in seconds of the epoch.
        problem: What was wrong with the last answer.
        unknown: What is known of a call whose outcome is not; empty where it is.
        answer: What the model is given.
    """

    args: dict[str, Any]
    why: str
    approved: str
    when: float
    problem: str
    unknown: str
    answer: NotRequired[Any]


_Update = dict[str, Any]


@dataclass(slots=True)
class _Case:
    """What the nodes need of a call that no checkpoint can hold."""

    request: ToolCallRequest
    bound: BoundTool
    supervision: Supervision
    send: Send
    asked: str = ""
    cut_off: bool = False

    def mark(self, args: Mapping[str, Any]) -> str:
        return fingerprint(self.bound.id, self.supervision.registry.pin(self.bound.id), args)

    def ask(self, kind: Kind, state: _Call, why: str) -> tuple[Any, str]:
        """A person's answer, and the mark of the call that it is about."""
        mark = self.mark(state["args"])
        told = {"step_id": self.supervision.step_id, "why": why, "mark": mark, "problem": state["problem"]}
        shown = question(kind, self.request.tool_call, self.bound, state["args"], **told)
        schema = self.bound.args_schema
        answer = interrupt(shown, response_schema=answer_schema(kind, schema if isinstance(schema, dict) else {}))
        if self.asked not in ("", mark):
            raise AnswerError("the tool's definition has changed since this was asked: look at the call again")
        return answer, mark

    def check(self, answer: Decision | Verdict, mark: str) -> None:
        if answer.hash not in (None, mark):
            raise AnswerError("the answer's hash is that of another call: look at this one again")
        if isinstance(answer, Decision) and answer.args is not None:
            schema = self.supervision.registry.catalog.tool(self.bound.id).input_schema
            if trouble := misfit(schema, answer.args):
                raise AnswerError(trouble)

    def said(self, text: str, *, kind: str, effect: str, error: bool = True) -> ToolMessage:
        """An answer to the model that is not the tool's own."""
        return ToolMessage(
            text,
            name=self.request.tool_call["name"],
            tool_call_id=self.request.tool_call["id"] or "",
            status="error" if error else "success",
            artifact={"tool": self.bound.id, "kind": kind, "effect": effect, "seconds": 0.0},
        )


def check_answerable(registry: ToolRegistry, policy: ApprovalPolicy) -> None:
    """Makes sure, before a run begins, that its questions could be answered.

    Args:
        registry: What may be called.
        policy: Which calls a person is asked about.

    Raises:
        SettingsError: A person may have to be asked, and there is no checkpointer to wait with.
    """
    if checkpointer() is not None:
        return
    for tool_id in registry.catalog.tools:
        assured = registry.assurance(tool_id)
        if assured.callable and assured.why(policy):
            raise SettingsError(f"{NO_CHECKPOINTER}. One of these tools is {tool_id}: {assured.why(policy)}")


async def supervised(request: ToolCallRequest, bound: BoundTool, supervision: Supervision, send: Send) -> Answer:
    """Runs one call, once a person has agreed to it where that is needed.

    Args:
        request: The call.
        bound: The tool.
        supervision: How it is looked after.
        send: Sends it.

    Returns:
        The tool's answer; or that the call was not sent, and why.

    Raises:
        GraphInterrupt: A person is asked.
    """
    assured = supervision.registry.assurance(bound.id)
    why = assured.why(supervision.policy)
    case = _Case(request, bound, supervision, send)
    if checkpointer() is None:
        return case.said(f"{NO_CHECKPOINTER}", kind="refused", effect="none") if why else await send(request)
    before = await _CALL.aget_state(get_config())
    if not before.next and "answer" in before.values:
        return cast("Answer", before.values["answer"])
    if not before.next and not why and assured.repeatable:
        return await send(request)
    case.asked, asked = _asked(before)
    case.cut_off = before.next == ("send",) and not asked and not assured.repeatable
    args = dict(request.tool_call["args"])
    given = _Call(args=args, why=why, approved="", when=0.0, problem="", unknown="")
    done = await _CALL.ainvoke(given, context=case, durability="sync")
    return cast("Answer", done["answer"])


async def _ask(state: _Call) -> _Update:
    case = get_runtime(_Case).context
    if not state["why"]:
        return {"approved": case.mark(state["args"]), "when": time.time()}
    try:
        answer, mark = case.ask("tool_approval", state, state["why"])
        decision = read_decision(answer, case.request.tool_call["name"])
        case.check(decision, mark)
    except AnswerError as error:
        return {"problem": str(error)}
    finally:
        case.asked = ""
    return _decided(decision, mark, case)


def _decided(decision: Decision, mark: str, case: _Case) -> _Update:
    named = f"agent {case.bound.agent!r}, tool {case.bound.id!r}"
    match decision.type:
        case "approve":
            return {"approved": mark, "when": time.time(), "problem": ""}
        case "edit":
            return {"args": decision.args or {}, "problem": ""}
        case "reject":
            reason = f": {decision.message}" if decision.message else ""
            told = f"{named}: a person refused this call{reason}. Nothing was sent. Do not try it in another way"
            return {"answer": case.said(told, kind="rejected", effect="none")}
        case "respond":
            return {"answer": case.said(decision.message, kind="", effect="none", error=False)}


async def _send(state: _Call) -> _Update:
    case, args = get_runtime(_Case).context, state["args"]
    if case.cut_off:
        case.cut_off = False
        return _unknown(case, f"agent {case.bound.agent!r}, tool {case.bound.id!r}: {_CUT_OFF}")
    if state["why"] and (state["approved"] != case.mark(args) or time.time() - state["when"] > _GOOD_FOR):
        return {"approved": "", "problem": "the approval is too old, or the tool's definition has changed since"}
    request = case.request
    answer = await case.send(request.override(tool_call={**request.tool_call, "args": args}))
    if isinstance(answer, ToolMessage):
        if args != request.tool_call["args"]:
            answer = _edited(answer, args, notice=case.supervision.notice)
        if _effect(answer) == "unknown" and not case.supervision.registry.assurance(case.bound.id).repeatable:
            return _unknown(case, answer.text)
    return {"answer": answer, "unknown": ""}


def _unknown(case: _Case, what: str) -> _Update:
    """To a person, if there is one; else the call has failed, and will not be made again."""
    if case.supervision.policy != "never":
        return {"unknown": what, "problem": ""}
    return {"answer": case.said(what, kind="crash", effect="unknown"), "unknown": ""}


async def _settle(state: _Call) -> _Update:
    case = get_runtime(_Case).context
    try:
        answer, mark = case.ask("unknown_outcome", state, state["unknown"])
        verdict = read_verdict(answer)
        case.check(verdict, mark)
    except AnswerError as error:
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
            return {"answer": case.said(state["unknown"], kind="crash", effect="unknown"), "unknown": ""}


def _after_ask(state: _Call) -> str:
    return END if "answer" in state else "send" if state["approved"] else "ask"


def _after_send(state: _Call) -> str:
    return "settle" if state["unknown"] else END if "answer" in state else "ask"


def _after_settle(state: _Call) -> str:
    return "settle" if state["unknown"] else END if "answer" in state else "send"


def _call_app() -> Any:
    call = StateGraph(_Call, context_schema=_Case)
    call.add_node("ask", _ask)
    call.add_node("send", _send)
    call.add_node("settle", _settle)
    call.add_edge(START, "ask")
    call.add_conditional_edges("ask", _after_ask, ["ask", "send", END])
    call.add_conditional_edges("send", _after_send, ["ask", "settle", END])
    call.add_conditional_edges("settle", _after_settle, ["send", "settle", END])
    return call.compile(name="call")


_CALL = _call_app()


def _asked(before: StateSnapshot) -> tuple[str, bool]:
    """The hash in the question that waits for an answer, and whether there is any question at all."""
    waiting = [found.value for task in before.tasks for found in task.interrupts]
    marks = [value["hash"] for value in waiting if isinstance(value, dict) and isinstance(value.get("hash"), str)]
    return (marks[0] if marks else ""), bool(waiting)


def _effect(message: ToolMessage) -> str:
    artifact = message.artifact if isinstance(message.artifact, dict) else {}
    return str(artifact.get("effect") or "") if message.status == "error" else ""


def _edited(answer: ToolMessage, args: Mapping[str, Any], *, notice: bool) -> ToolMessage:
    artifact = answer.artifact if isinstance(answer.artifact, dict) else {}
    content = answer.content
    if notice and isinstance(content, str):
        content = f"{content}\n\n(A person changed the arguments of this call to {dict(args)} before it was made.)"
    return answer.model_copy(update={"content": content, "artifact": {**artifact, "args": dict(args)}})
