"""Questions to the user, and the forms of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field


class Question(BaseModel):
    """A question to the user."""

    question: str = Field(min_length=1, description="What the user must say before the request can be carried out")
    choices: list[str] = Field(default_factory=list, description="The possible answers, where there are few")


KIND = "question"
"""The ``type`` of the interrupt."""


def user_question(asked: Question) -> dict[str, Any]:
    """The payload of the interrupt."""
    return {
        "type": KIND,
        "question": asked.question,
        "choices": list(asked.choices),
        "description": question_text(asked),
        "decisions": ["answer", "leave"],
    }


def question_text(asked: Question) -> str:
    """The question in one line, with its choices."""
    return f"{asked.question} ({', '.join(asked.choices)})" if asked.choices else asked.question


def question_answers() -> dict[str, Any]:
    """JSON Schema of the answers, from which a client can build a form."""
    text = {"type": "string", "minLength": 1}
    answer = answer_form("answer", {"answer": text}, ["answer"])
    return {"oneOf": [answer, answer_form("leave"), {**text, "title": "the answer itself"}]}


def answer_form(kind: str, fields: Mapping[str, Any] | None = None, required: Sequence[str] = ()) -> dict[str, Any]:
    """JSON Schema of one kind of answer: an object with its ``type`` and these fields."""
    properties = {"type": {"const": kind}, **(fields or {})}
    return {"type": "object", "title": kind, "properties": properties, "required": ["type", *required]}


def user_answer(answer: object) -> str:
    """The user's answer; empty if the question is left unanswered."""
    text = answer.get("answer") if isinstance(answer, Mapping) else answer
    return " ".join(text.split()) if isinstance(text, str) else ""
