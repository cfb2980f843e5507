"""Questions of a run that wait for a person, as the page shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from callsheet.orchestrator.server.explorer.answers.json_answers import Link, shown_line, shown_text
from callsheet.orchestrator.server.explorer.answers.search_results import link
from callsheet.orchestrator.server.explorer.site import Seen

WITHHELD = "withheld: it is about tools that you may not see"
Text = Annotated[str, AfterValidator(shown_text)]
Line = Annotated[str, AfterValidator(shown_line)]
_STATUS = {"tool_approval": "needs_approval", "unknown_outcome": "outcome_unknown"}


class Shown(BaseModel):
    """A part of an answer with texts that are safe to display; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class QuestionShown(Shown):
    """A question that waits for a person.

    Attributes:
        id: Id of its interrupt.
        kind: ``tool_approval``, ``unknown_outcome``, ``needs_input`` or ``question``; another agent may ask in its own.
        step: Id of the step; empty for a question about the whole request.
        status: The status of the step meanwhile.
        tool: The tool that it is about, if any.
        text: The question in one sentence.
        why: Why a call needs a person.
        problem: What was wrong with the last answer.
        unchecked: Why the arguments could not be validated; empty if they were.
        args: The arguments of the call as JSON text, complete; None without a call.
        fields: The missing values: parameter -> its JSON Schema.
        choices: Proposed answers.
        decisions: The kinds of answer; none if the user may not see the tool.
        hash: Binds an answer to exactly this call.
    """

    id: str
    kind: str
    step: Line = ""
    status: str = ""
    tool: Link | None = None
    text: Text = ""
    why: Text = ""
    problem: Text = ""
    unchecked: Text = ""
    args: str | None = None
    fields: Mapping[str, Any] = Field(default_factory=dict)
    choices: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    hash: str = ""


def question_shown(seen: Seen, interrupt: str, value: Any) -> QuestionShown:
    """A question; without its content if it is about a tool that the user may not see."""
    plain: Mapping[str, Any] = value if isinstance(value, Mapping) else {"type": "", "description": str(value)}
    kind, step, tool = str(plain.get("type") or ""), str(plain.get("step_id") or ""), plain.get("tool")
    status = _STATUS.get(kind, "needs_input")
    if tool and not seen.may_see(str(tool)):
        return QuestionShown(id=interrupt, kind=kind, step=step, status=status, text=WITHHELD)
    schema, args = plain.get("schema"), plain.get("args")
    return QuestionShown(
        id=interrupt,
        kind=kind,
        step=step,
        status=status,
        tool=link(str(tool), seen.catalog) if tool else None,
        text=str(plain.get("question") or plain.get("description") or plain),
        why=str(plain.get("why") or ""),
        problem=str(plain.get("problem") or ""),
        unchecked=str(plain.get("unchecked") or ""),
        # Complete and exact: what is approved has to be seen, and what is edited is sent back.
        args=None if args is None else json.dumps(args, ensure_ascii=True, indent=2, default=str),
        fields=dict(schema.get("properties") or {}) if isinstance(schema, Mapping) else {},
        choices=tuple(map(str, plain.get("choices") or ())),
        decisions=tuple(map(str, plain.get("decisions") or ())),
        hash=str(plain.get("hash") or ""),
    )
