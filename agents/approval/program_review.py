"""One question about the calls of a program whose arguments are known before the first of them is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.types import interrupt

from callsheet.agents.approval.questions import fingerprint
from callsheet.agents.approval.supervised_call import SupervisedCall, Supervision
from callsheet.agents.calls.review import AnswerError, DecisionType, read_decision, review_answers, review_request
from callsheet.agents.registry.binding import RUN_PROGRAM, BoundTool
from callsheet.graphs.trust.pins import digest

_WORDS: tuple[DecisionType, ...] = ("approve", "reject")


@dataclass(frozen=True, slots=True)
class ProgramReview:
    """Asks a person about the calls of one program together.

    Attributes:
        supervision: How single calls are supervised.
        request: The call of ``run_program``.
    """

    supervision: Supervision
    request: Any

    async def doubt(self, tool: BoundTool, args: Mapping[str, Any]) -> str:
        """Why a call needs approval; empty if it needs none."""
        why = self._case(tool).why(args)
        if not why:
            return ""
        allowed: bool = await asyncio.to_thread(self.supervision.allows, tool.id)
        return "" if allowed else why

    def reads(self, tool_id: str) -> bool:
        """Whether a tool is known to change nothing."""
        return self.supervision.registry.assurance(tool_id).harm == "none"

    def mark(self, tool: BoundTool, args: Mapping[str, Any]) -> str:
        """The fingerprint that the approval of a call is bound to."""
        return fingerprint(tool.id, self.supervision.registry.pin(tool.id), args)

    def ask(self, calls: Sequence[Mapping[str, Any]]) -> str | None:
        """Asks about these calls, each with ``tool`` and ``args``; None if they are approved, else why they are not.

        Raises:
            GraphInterrupt: There is no answer yet.
        """
        step = self.supervision.step_id
        who = f"Step {step}" if step else "The agent"
        shown = [{"tool": call["tool"], "args": call["args"]} for call in calls]
        told = f"{who} wants to run a program that makes these {len(calls)} calls. No other call is approved by this."
        about: dict[str, Any] = {"step_id": step, "agent": "", "tool": RUN_PROGRAM, "why": told}
        about |= {"hash": digest([call["mark"] for call in calls]), "tool_call_id": self.request.tool_call["id"] or ""}
        about["confirm"] = any(call["confirm"] for call in calls) or None
        question = review_request("tool_approval", RUN_PROGRAM, {"calls": shown}, told, _WORDS, **about)
        answer = interrupt(question, response_schema=review_answers(RUN_PROGRAM, _WORDS))
        try:
            decision = read_decision(answer, RUN_PROGRAM, _WORDS)
        except AnswerError as error:
            return f"the calls were not approved ({error})"
        if decision.hash not in (None, about["hash"]):
            return "the answer has the hash of another question"
        if decision.type == "approve":
            return None
        return "a person refused these calls" + (f": {decision.message}" if decision.message else "")

    def confirms(self, tool: BoundTool) -> bool:
        """Whether a person must confirm calls of a tool whatever ``approval`` is."""
        return bool(self._case(tool).doubt("never"))

    def _case(self, tool: BoundTool) -> SupervisedCall:
        return SupervisedCall(self.request, tool, self.supervision, _unsent)


async def _unsent(request: Any) -> Any:
    raise NotImplementedError("a call that is only examined is not sent")
