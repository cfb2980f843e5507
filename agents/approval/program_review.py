"""Asks one question about all calls of a program whose arguments are known before the first of them is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.types import interrupt

from callsheet.agents.approval.call_app import examine_call
from callsheet.agents.approval.supervised_call import SupervisedCall
from callsheet.agents.approval.supervision import Supervision
from callsheet.agents.calls.question_text import shown_value
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.review import (
    Decision,
    DecisionType,
    read_decisions,
    review_answers,
    review_request,
    review_several,
    several_answers,
)
from callsheet.agents.registry.binding import BoundTool

_WORDS: tuple[DecisionType, ...] = ("approve", "reject")
"""A call that a person wants to change is rejected; asked about alone, it can be changed."""
KnownCall = tuple[BoundTool, Mapping[str, Any]]
"""A tool, and the arguments of a call of it."""


@dataclass(frozen=True, slots=True)
class ProgramReview:
    """Asks a person about the calls of one program together.

    Attributes:
        supervision: How single calls are supervised.
        request: The call of ``run_program``.
        examined: The calls that were checked, by tool and arguments.
    """

    supervision: Supervision
    request: Any
    examined: dict[tuple[str, str], SupervisedCall] = field(default_factory=dict)

    async def doubt(self, tool: BoundTool, args: Mapping[str, Any]) -> Refusal | None:
        """Returns why a call needs approval; None if it needs none, or if it is refused in any case."""
        case = await self._case(tool, args)
        return None if case.refusal() else case.needs_approval()

    def offers(self, tool: BoundTool) -> list[DecisionType]:
        """Returns the decisions that a person can make on a call of a tool, if it is one of several calls."""
        allowed = self.supervision.reviews.get(tool.id) or _WORDS
        return [word for word in _WORDS if word in allowed]

    async def digest(self, tool: BoundTool, args: Mapping[str, Any]) -> str:
        """Returns the digest of a call, to which its approval is bound."""
        return (await self._case(tool, args)).checked.digest

    async def ask(self, calls: Sequence[KnownCall], problem: str) -> list[Decision]:
        """Asks for the decisions on these calls and returns them in order; ``problem`` says what was wrong before.

        Raises:
            GraphInterrupt: There is no answer yet.
            AnswerError: The answer is invalid, or about other calls.
        """
        step = self.supervision.step_id
        who = f"Step {step}" if step else "The agent"
        told = f"{who} wants to run a program that makes these {len(calls)} calls. No other call is approved by this."
        questions = [self._question(await self._case(tool, args)) for tool, args in calls]
        about: dict[str, Any] = {"step_id": step, "why": told, "problem": problem or None}
        for name in ("confirm", "unchecked"):  # whoever approves everything stops at these
            about[name] = next((one[name] for one in questions if name in one), None)
        payload = review_several(questions, tool_call_id=self.request.tool_call["id"] or "", **about)
        forms = [review_answers(tool.name, self.offers(tool)) for tool, _ in calls]
        return read_decisions(interrupt(payload, response_schema=several_answers(forms)), payload)

    async def rejected(self, tool: BoundTool, call: ToolCall, message: str) -> ToolMessage:
        """Returns the answer to a call that a person rejected before the program made it."""
        request = self.request.override(tool_call=call)
        case = await examine_call(request, tool, self.supervision, _unsent)
        return case.rejected_by(Decision(type="reject", message=message))

    def _question(self, case: SupervisedCall) -> dict[str, Any]:
        tool = case.bound
        args = case.checked.arguments
        needed = case.needs_approval()
        why = needed.reason if needed else ""
        about: dict[str, Any] = {"agent": tool.agent, "tool": tool.id, "why": why, "hash": case.checked.digest}
        about |= {"shown": shown_value(args), **case.cautions()}
        told = case.description("tool_approval", why)
        return review_request("tool_approval", tool.name, args, told, self.offers(tool), **about)

    async def _case(self, tool: BoundTool, args: Mapping[str, Any]) -> SupervisedCall:
        """Returns a call of the program, checked once as long as the tool's definition is the same."""
        key = (tool.id, repr(args))
        if key not in self.examined:
            request = self.request.override(tool_call={**self.request.tool_call, "args": dict(args)})
            self.examined[key] = await examine_call(request, tool, self.supervision, _unsent)
        case = self.examined[key]
        await case.check(case.checked.arguments)
        return case


async def _unsent(request: Any) -> Any:
    raise NotImplementedError("a call that is only examined is not sent")
