"""The questions of a call or a step to a person, and the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from langgraph.types import interrupt

from callsheet.agents.calls.outcome import ServerQuestion
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.review import AnswerError, DecisionType, read_decision, review_answers, review_request
from callsheet.agents.safety.arguments import fit_of
from callsheet.agents.servers.server_questions import server_answer
from callsheet.graphs.text.json_schema import shown_form

QuestionKind = Literal["tool_approval", "unknown_outcome", "needs_input", "new_tool"]
MOST_WRONG = 3
"""Maximum number of invalid answers in a row; after that, a question is not asked again."""


OFFERED: Mapping[QuestionKind, tuple[DecisionType, ...]] = {
    "tool_approval": ("approve", "edit", "reject", "respond"),
    # No "approve": whoever approves everything must not have a call sent twice.
    "unknown_outcome": ("edit", "respond", "reject"),
    "needs_input": ("edit", "reject"),
    # A definition is accepted for good; nothing is called yet.
    "new_tool": ("approve", "reject"),
}
"""The decisions that a person can make on each kind of question."""


NEEDS_INPUT: QuestionKind = "needs_input"
"""The ``type`` of the question that asks for missing values."""


def missing_values(outcome: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Maps ids of tools to parameters without a value; under "", there is what a model asks for."""
    if outcome.get("status") != NEEDS_INPUT:
        return {}
    if outcome.get("reply"):
        return {"": tuple(outcome.get("missing") or ("answer",))}
    wanted = tuple(outcome.get("parameters") or ())
    return {outcome["tool"]: wanted} if wanted else {}


def wanted_schema(schema: Mapping[str, Any], parameters: Sequence[str]) -> dict[str, Any]:
    """Returns the JSON Schema of an object with exactly these parameters of a tool, for a form.

    ``schema`` has no references.
    """
    properties = {name: schema["properties"].get(name, {}) for name in parameters}
    form = {"type": "object", "properties": properties, "required": list(parameters), "additionalProperties": False}
    return shown_form(form)


def input_question(
    step_id: str, tool: str, schema: Mapping[str, Any], why: str, problem: str = "", *, server: str = ""
) -> dict[str, Any]:
    """Returns the payload of the interrupt that asks for missing values; an edit answers it.

    ``problem`` says what was wrong with the last answer; ``server`` is the agent whose server asks, if one does.
    """
    about = {"step_id": step_id, "agent": tool.partition("/")[0], "tool": tool, "schema": dict(schema)}
    wanted = dict.fromkeys(schema["properties"])
    told = f"Step {step_id}: {why}" if step_id else f"{why[0].upper()}{why[1:]}"
    told += "" if why.endswith("?") else "."
    name = tool or NEEDS_INPUT
    return review_request(
        NEEDS_INPUT, name, wanted, told, OFFERED[NEEDS_INPUT], **about, problem=problem or None, server=server or None
    )


def ask_values(question: Mapping[str, Any]) -> dict[str, Any] | None:
    """Asks a person by an ``input_question`` and returns the values; None if there are none."""
    name = question["tool"] or NEEDS_INPUT
    form = review_answers(name, OFFERED[NEEDS_INPUT], question["schema"])
    try:
        return read_decision(interrupt(question, response_schema=form), name, OFFERED[NEEDS_INPUT]).args
    except AnswerError:
        return None


async def ask_for_server(step_id: str, tool: str, question: ServerQuestion) -> dict[str, object]:
    """Asks a person a question of the server of a tool; returns the answer as an ``ElicitResult``.

    Raises:
        GraphInterrupt: A person is asked.
    """
    # In one line: a new one could look like the question of somebody else.
    message = " ".join(question["message"].split()).rstrip(".")
    agent = tool.partition("/")[0]
    why = f"the server of {agent!r} asks: {message}"
    form = question["form"]
    problem = ""
    for _ in range(MOST_WRONG):
        values = ask_values(input_question(step_id, tool, form, why, problem, server=agent))
        if values is None:
            return {"action": "decline"}
        # In a thread: validation may take a second.
        refusal = await asyncio.to_thread(refusal_of_values, form, values)
        if refusal is None:
            return server_answer(question, values)
        problem = refusal.reason
    return {"action": "cancel"}


def typed_value(schema: Mapping[str, Any], name: str, text: str) -> Any:
    """Converts the text that a person wrote for a parameter of a ``wanted_schema`` to a value of its type.

    Raises:
        AnswerError: Neither fits.
    """
    one = wanted_schema(schema, [name])
    values: list[Any] = [text]
    with suppress(ValueError, RecursionError):
        values.append(json.loads(text))
    refusal: Refusal | None = None
    for value in values:
        refusal = refusal_of_values(one, {name: value})
        if refusal is None:
            return value
    raise AnswerError(str(refusal))


def refusal_of_values(schema: Mapping[str, Any], values: Mapping[str, Any]) -> Refusal | None:
    """Returns why values do not fit the ``wanted_schema``; None if they do, or if only the call can show it."""
    errors = fit_of(schema, values).errors
    return Refusal("; ".join(errors)) if errors else None
