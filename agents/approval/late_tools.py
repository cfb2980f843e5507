"""Asks a person to accept the tools that a server has added in the middle of a run, before anybody can call them.

The question runs as a small app inside the worker's tool node: before it is shown, a checkpoint stores which definition
it is about, so that an answer accepts exactly that definition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import interrupt
from typing_extensions import TypedDict

from callsheet.agents.approval.questions import MOST_WRONG, OFFERED, QuestionKind
from callsheet.agents.approval.supervision import Supervision
from callsheet.agents.calls.question_text import shown_definition, shown_text
from callsheet.agents.calls.review import (
    AnswerError,
    Decision,
    read_decision,
    review_answers,
    review_request,
)
from callsheet.agents.calls.run_claim import checkpointer
from callsheet.graphs.errors import CallsheetError
from callsheet.graphs.trust.pins import Change
from callsheet.graphs.trust.policy import User

_KIND: QuestionKind = "new_tool"
ACCEPT = "accept_tool"
"""The name of the action that a person decides on."""
_WHY = "Its server has added it in this run. Nobody has accepted its definition yet."
_REFUSED = "a person has not accepted it"
_OTHER = "its definition has changed since this was asked: look at it again"


class _State(TypedDict):
    """The state of the question about one tool.

    Attributes:
        asked: SHA-256 of the definition that the question is about.
        problem: What was wrong with the last answer; ``wrong``: the number of such answers in a row.
        refused: Why the tool is not accepted; empty if it is; None until it is decided.
    """

    asked: str
    problem: str
    wrong: int
    refused: str | None


@dataclass(frozen=True, slots=True)
class _Case:
    """One tool that waits for a person, by its id."""

    id: str
    supervision: Supervision
    user: User | None

    @property
    def change(self) -> Change | None:
        """Returns what the server lists now; None if it no longer lists the tool, or somebody else has accepted it."""
        return self.supervision.registry.late(self.user).get(self.id)


def _note(state: _State) -> dict[str, str]:
    """Stores which definition the next question is about."""
    change = get_runtime(_Case).context.change
    return {"asked": change.sha256 if change else ""}


async def _ask(state: _State) -> dict[str, Any]:
    """Asks a person, and accepts the definition that was shown."""
    case = get_runtime(_Case).context
    change = case.change
    if change is None:
        return {"refused": ""}  # the registry says whether it can be called now, and why not
    if change.sha256 != state["asked"]:
        return {"problem": _OTHER}
    try:
        decision = _decision(case, change, state["problem"])
    except AnswerError as error:
        wrong = state["wrong"] + 1
        return {"problem": str(error), "wrong": wrong, "refused": _REFUSED if wrong >= MOST_WRONG else None}
    if decision.type == "reject":
        return {"refused": f"{_REFUSED}: {decision.message}" if decision.message else _REFUSED}
    try:
        await asyncio.to_thread(case.supervision.registry.accept, change)
    except CallsheetError as error:
        return {"refused": str(error)}
    return {"refused": ""}


def _decision(case: _Case, change: Change, problem: str) -> Decision:
    """Asks a person about a definition and returns the decision; raises an ``AnswerError`` if it is invalid."""
    definition = dict(change.after or {})
    arguments = {"tool": change.id, "definition": definition}
    about: dict[str, Any] = {
        "step_id": case.supervision.step_id,
        "agent": change.agent,
        "tool": change.id,
        "why": _WHY,
        "hash": change.sha256,
        "problem": problem or None,
    }
    shown = shown_definition(definition)
    told = shown_text(f"{change.id}: {_WHY} Accept it? It is not called by that.")
    # Clients of LangChain's form show the description only.
    question = review_request(_KIND, ACCEPT, arguments, f"{told}\n{shown}", OFFERED[_KIND], **about)
    question["shown"] = shown
    decision = read_decision(
        interrupt(question, response_schema=review_answers(ACCEPT, OFFERED[_KIND])), ACCEPT, OFFERED[_KIND]
    )
    if decision.hash not in (None, change.sha256):
        raise AnswerError(_OTHER)
    return decision


def _next(state: _State) -> str:
    return "note" if state["refused"] is None else END


def _app() -> Any:
    app = StateGraph(_State, context_schema=_Case)
    app.add_node("note", _note)
    app.add_node("ask", _ask)
    app.add_edge(START, "note")
    app.add_edge("note", "ask")
    app.add_conditional_edges("ask", _next, ["note", END])
    return app.compile(name="accept")


_ACCEPT = _app()


def can_accept(supervision: Supervision) -> bool:
    """Returns whether a person can be asked here to accept a tool."""
    return supervision.policy != "never" and checkpointer() is not None


async def accept_late(ids: Sequence[str], supervision: Supervision, user: User | None) -> Mapping[str, str]:
    """Asks a person about tools that servers have added in the middle of a run, one after the other.

    Returns:
        Id -> the reason why it cannot be used, for those that were not accepted; where nobody can be asked, it names
        the command that accepts the tool. Ids of other tools are ignored.

    Raises:
        GraphInterrupt: A person is asked.
    """
    registry = supervision.registry
    waiting = registry.late(user)
    refused: dict[str, str] = {}
    for tool_id in ids:
        if tool_id not in waiting:
            continue
        why = registry.refused([tool_id], user).get(tool_id, "")
        if can_accept(supervision):
            begun = _State(asked="", problem="", wrong=0, refused=None)
            case = _Case(tool_id, supervision, user)
            why = (await _ACCEPT.ainvoke(begun, context=case, durability="sync"))["refused"]
        if why:
            refused[tool_id] = why
    return refused
