"""The state of the app that makes one call, and how a server goes on with a call later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired

from typing_extensions import TypedDict

from callsheet.agents.approval.supervised_call import Answer, SupervisedCall
from callsheet.agents.calls.call_context import TaskCall
from callsheet.agents.calls.outcome import Kind, ServerQuestion, outcome_in
from callsheet.agents.calls.run_claim import checkpointer
from callsheet.agents.servers.server_questions import MOST_QUESTIONS


class CallState(TypedDict):
    """The state of the app that makes one call.

    Attributes:
        why: The reason why the call needs approval; None if it needs none.
        approved: The ``digest`` of the call that was approved, at ``when`` (in seconds since the epoch).
        problem: What was wrong with the last answer.
        unknown: What is known about a call whose outcome is unknown; None for other calls.
        task: The server's id of the task as which it works on the call; None if it has named none, or none any more.
            ``interval``: seconds until the server wants to be asked about it.
        questions: Questions of the server that a person has not answered yet; it has asked them with ``request_state``.
        answers: Answers that the server has not got yet; ``answered``: the keys of all that it gets.
        open_call: The id of the entry of the call with the task, or with the unknown outcome; ``sent``: whether that is
            this call, and not an earlier one like it.
        wrong: Number of consecutive invalid answers.
    """

    args: dict[str, Any]
    why: str | None
    approved: str | None
    when: float
    problem: str | None
    unknown: str | None
    wrong: NotRequired[int]
    kind: NotRequired[Kind]
    task: NotRequired[str | None]
    interval: NotRequired[float]
    questions: NotRequired[Mapping[str, ServerQuestion] | None]
    request_state: NotRequired[str]
    answers: NotRequired[dict[str, object] | None]
    answered: NotRequired[list[str]]
    open_call: NotRequired[str | None]
    sent: NotRequired[bool]
    answer: NotRequired[object]


Update = dict[str, Any]
"""A change of the state of a call."""


class GoingOn(NamedTuple):
    """A call with which its server goes on later: as a task, or when its questions are answered.

    Attributes:
        task: The server's id of the task; empty if it only asks.
        entry_id: The id of its entry among the open calls, if any.
        interval: Seconds until the server wants to be asked about the task.
        questions: The questions, by their keys.
        request_state: The ``requestState`` with which the server has asked them.
    """

    task: str
    entry_id: str | None
    interval: float = 0.0
    questions: Mapping[str, ServerQuestion] | None = None
    request_state: str = ""

    @classmethod
    def of(cls, answer: Answer, entry_id: str | None) -> GoingOn | None:
        """Returns how a call goes on after an answer; None if that is its result."""
        outcome = outcome_in(answer)
        if not (outcome.task or outcome.questions):
            return None
        return cls(outcome.task, entry_id, outcome.interval, outcome.questions, outcome.state)


def going_on_update(going_on: GoingOn, *, sent: bool = True) -> Update:
    """Returns the state of a call that goes on at its server; ``sent``: it is this very call."""
    about: Update = {"task": going_on.task or None, "open_call": going_on.entry_id, "sent": sent, "unknown": None}
    about |= {"interval": going_on.interval, "request_state": going_on.request_state, "answers": None}
    return {**about, "questions": going_on.questions}


def held_call(case: SupervisedCall, state: CallState, *, waits: bool = True) -> TaskCall:
    """Returns what the call itself does for its server: it follows its task, and asks and answers its questions."""
    answered = state.get("answered", [])
    is_attended = checkpointer() is not None and case.supervision.policy != "never"
    return TaskCall(
        id=state.get("task") or "",
        # In a run that is resumed, the time is over.
        interval=0.0 if case.began is None else state.get("interval", 0.0),
        waits=waits,
        asks=is_attended and len(answered) < MOST_QUESTIONS,
        answers=state.get("answers") or {},
        answered=answered,
        state=state.get("request_state", ""),
    )
