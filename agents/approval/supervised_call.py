"""Supervises one call: decides whether a person must approve it, asks the question, and reads the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command, interrupt

from callsheet.agents.approval.call_record import NOWHERE, CallPlace, CallRecord
from callsheet.agents.approval.questions import OFFERED, QuestionKind
from callsheet.agents.approval.supervision import Supervision
from callsheet.agents.calls.outcome import Effect, Kind, Outcome, answer_to
from callsheet.agents.calls.question_text import inexact, shown_text, shown_value
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.review import AnswerError, Decision, read_decision, review_answers, review_request
from callsheet.agents.calls.run_claim import Claim
from callsheet.agents.registry.binding import BoundTool
from callsheet.agents.registry.checked_call import CheckedCall
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.safety.arguments import fit_of
from callsheet.graphs.catalog.formats.server_config import ApprovalPolicy
from callsheet.graphs.errors import CallsheetError
from callsheet.graphs.text.json_schema import shown_form

Answer = ToolMessage | Command[Any]
Send = Callable[[ToolCallRequest], Awaitable[Answer]]
NOBODY = "it needs approval, and nobody can be asked here: run the graph supervisor in a thread"
"""The message for a call that is refused because nobody can be asked."""
PROGRAM_ASKS = Refusal("The program asks before every call of this tool.")


@dataclass(slots=True)
class SupervisedCall:
    """A checked call with the objects that no checkpoint can hold.

    Attributes:
        checked: The last check of the call; it is checked again only if a person edits it or the tool's definition
            changes.
        send: Sends the call.
        allowed: Whether a person has allowed the tool by name.
        asked: The digest of the call in the pending question; None if no question is pending.
        cut_off: Whether the call was running when the program stopped, or its run was rolled back.
        claim: The claim of the run; None without a checkpointer.
        place: Where the call is made; a resumed run finds the record of the call by it.
        events: Whether the custom stream tells of the call.
        began: The time at which it was sent in this process, in seconds since 1970; None before that.
    """

    request: ToolCallRequest
    bound: BoundTool
    supervision: Supervision
    send: Send
    checked: CheckedCall
    allowed: bool = False
    asked: str | None = None
    cut_off: bool = False
    claim: Claim | None = None
    place: CallPlace = NOWHERE
    events: bool = False
    began: float | None = None

    @property
    def named(self) -> str:
        """Returns the names of agent and tool, with which every error of a call begins."""
        return f"agent {self.bound.agent!r}, tool {self.bound.id.removeprefix(f'{self.bound.agent}/')!r}"

    @property
    def registry(self) -> ToolRegistry:
        """Returns the registry of the tools."""
        return self.supervision.registry

    @property
    def repeatable(self) -> bool:
        """Returns whether two calls have the same effect as one."""
        return self.checked.assurance.repeatable

    async def check(self, args: Mapping[str, Any]) -> CheckedCall:
        """Checks a call with these arguments against the present definition of the tool, and returns it."""
        checked, bound = self.checked, self.bound
        if not checked.is_of(bound.id, args) or checked.pin != self.registry.pin(bound.id):
            # In a thread: validation may take a second.
            checked = await asyncio.to_thread(self.registry.check, bound, args, self.supervision.secrets)
            self.checked = checked
        return checked

    def doubt(self, policy: ApprovalPolicy) -> Refusal | None:
        """Returns why calls of the tool need approval, as a sentence; None if they need none.

        The program's ``interrupt_on`` counts first, then the permission of a person by name, then ``approval``.
        """
        assured, supervision = self.checked.assurance, self.supervision
        if supervision.reviews.get(self.bound.id):
            return assured.doubt or PROGRAM_ASKS
        if self.allowed:
            return None
        if supervision.confirms and assured.confirmation:
            return assured.confirmation
        return assured.refusal(policy)

    def needs_approval(self) -> Refusal | None:
        """Returns why the call needs approval, in sentences; None if it needs none."""
        doubt = self.doubt(self.supervision.policy)
        if doubt is None and self.supervision.policy == "never":
            return None
        reasons = [reason.reason for reason in (doubt, self.unchecked()) if reason]
        return Refusal(" ".join(reasons)) if reasons else None

    def unchecked(self) -> Refusal | None:
        """Returns why the arguments could not be validated, as a sentence; None if they were."""
        if self.checked.fit.unchecked is None:
            return None
        told = str(self.supervision.secrets.hidden(self.checked.fit.unchecked.reason))
        return Refusal(f"{told[0].upper()}{told[1:]}.")

    def refusal(self) -> Refusal | None:
        """Returns why nobody can approve the call: its tool is no longer there, or the arguments do not fit."""
        if self.bound.id not in self.registry.catalog.tools:
            reason = self.registry.refused([self.bound.id]).get(self.bound.id)
            return Refusal(reason) if reason else None
        misfit = self.checked.fit.misfit
        return Refusal(str(self.supervision.secrets.hidden(misfit.reason))) if misfit else None

    def record(self) -> CallRecord:
        """Returns the record of the call."""
        return CallRecord.of(self.supervision.ledger, self.checked, self.place, self.named, self.said)

    async def asks(self) -> bool:
        """Returns whether a person must be asked before the call is sent."""
        return self.needs_approval() is not None or await self.record().is_repeated()

    def ask(self, kind: QuestionKind, why: str, problem: str | None, **more: Any) -> Decision:
        """Asks a person about the call and returns the decision.

        ``more`` are further fields of the question: ``open_call``, the id of the call whose outcome is unknown, and
        ``sent``, whether that is this call.

        Raises:
            AnswerError: It is invalid or about another call, or edited arguments do not fit.
        """
        bound, supervision, mark, args = self.bound, self.supervision, self.checked.digest, self.checked.arguments
        name, call_id = self.request.tool_call["name"], self.request.tool_call["id"] or ""
        about: dict[str, Any] = {"step_id": supervision.step_id, "agent": bound.agent, "tool": bound.id, "why": why}
        about |= {"hash": mark, "tool_call_id": call_id, "problem": problem or None, "shown": shown_value(args), **more}
        words, approval = OFFERED[kind], kind == "tool_approval"
        if approval:
            words = supervision.reviews.get(bound.id) or words
            about |= self.cautions()
            about["always"] = self.remembers or None
        shown = review_request(kind, name, args, self.description(kind, why, **more), words, **about)
        form = review_answers(name, words, shown_form(bound.form.plain), always=approval and self.remembers)
        given = interrupt(shown, response_schema=form)
        self._check_asked(mark)
        answer = read_decision(given, name, words)
        if answer.hash not in (None, mark):
            raise AnswerError("the answer has the hash of another call: look at this one again")
        if answer.always and not (approval and answer.type == "approve" and self.remembers):
            raise AnswerError('"always" is not allowed for this call: approve it without "always"')
        if answer.args is not None:
            self._check_edited(answer.args)
        return answer

    def cautions(self) -> dict[str, Any]:
        """Returns the fields of a question that exclude the call from an approval of all calls at once.

        ``unchecked`` says why the arguments were not validated; ``confirm`` says that no policy covers the call. A
        field without such a reason is None.
        """
        unchecked = self.unchecked()
        return {
            "unchecked": unchecked.reason if unchecked else None,
            "confirm": True if self.doubt("never") else None,
        }

    def _check_asked(self, mark: str) -> None:
        """Raises an ``AnswerError`` if the question that was answered is not about the call as it is now."""
        asked, self.asked = self.asked, None
        if asked is None:  # an answer without an id, whose own question nobody asks any more, is for whoever asks next
            raise AnswerError("the last answer was for another question: look at this call")
        if asked != mark:
            raise AnswerError("the tool's definition has changed since this was asked: look at the call again")

    def _check_edited(self, args: Mapping[str, Any]) -> None:
        """Raises an ``AnswerError`` if arguments that a person has edited cannot be sent exactly, or do not fit."""
        refusal = inexact(args)
        if refusal:
            raise AnswerError(refusal.reason)
        secrets, tool = self.supervision.secrets, self.registry.catalog.tools.get(self.bound.id)
        opened = secrets.opened(self.bound.form.plain, args)
        misfit = fit_of(tool.input_schema, opened).misfit if tool else None
        if misfit:
            raise AnswerError(secrets.hidden(misfit.reason))

    def description(self, kind: QuestionKind, why: str, *, sent: bool = True, open_call: str | None = None) -> str:
        """Returns the text that introduces a call to a person."""
        who = f"Step {self.supervision.step_id}" if self.supervision.step_id else "The agent"
        why_asked = f"{self.bound.id}: {why.removesuffix('.')}."
        if kind == "unknown_outcome":
            effect = "Respond if it took effect; edit to send it again; reject to leave it."
            ledger = self.supervision.ledger
            if open_call and ledger:
                effect += f" Or say what became of it with {ledger.how_to_settle(open_call)}, and resume."
            return shown_text(f"{who} {'has called' if sent else 'wants to call'} {why_asked} {effect}")
        return shown_text(f"{who} wants to call {why_asked}")

    @property
    def remembers(self) -> bool:
        """Returns whether the tool can be approved permanently; not if the program asks before each call."""
        return self.supervision.standing is not None and self.bound.id not in self.supervision.reviews

    async def remember(self) -> None:
        """Stores that the user has approved the tool permanently; raises an ``AnswerError`` if that fails."""
        standing, tool = self.supervision.standing, self.registry.catalog.tools.get(self.bound.id)
        try:
            if standing is not None and tool:
                await asyncio.to_thread(standing.add, tool, self.registry.pin(tool.id))
        except (CallsheetError, OSError) as error:
            raise AnswerError(f'"always" was not stored, so nothing was sent: {error}') from error

    def edited(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Converts arguments that a person has edited for the state: placeholders replace secrets."""
        return self.supervision.secrets.masked(self.bound.form.plain, args)

    def refused(self, refusal: Refusal) -> ToolMessage:
        """Returns the message for a call that must not be sent."""
        return self.said(f"{self.named}: {refusal}", kind="refused", effect="none")

    def rejected_by(self, decision: Decision) -> ToolMessage:
        """Returns the message for a call that a person has rejected, or the program because nobody could be asked."""
        reason = f": {decision.message}" if decision.message else ""
        return self.rejected(NOBODY if decision.message == NOBODY else f"a person refused this call{reason}")

    def rejected(self, why: str) -> ToolMessage:
        """Returns the message for a call that a person has rejected."""
        told = f"{self.named}: {why}. Nothing was sent. Do not try it in another way"
        return self.said(told, kind="rejected", effect="none")

    def said(self, text: str, *, kind: Kind, effect: Effect, error: bool = True) -> ToolMessage:
        """Makes a message for the model that is not the tool's own answer."""
        outcome = Outcome(tool=self.bound.id, kind=kind, effect=effect)
        return answer_to(self.request.tool_call, text, outcome, error=error)
