"""Missing values of a step: the question to a person, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callsheet.agents.planning.drafts import answer_form
from callsheet.agents.safety.arguments import fit_of

KIND = "needs_input"
"""The ``type`` of the question."""
_DEFINITIONS = ("$defs", "definitions")


def missing_values(said: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Tool id -> parameters without a value, from ``additional_kwargs`` of a worker's last message.

    What a model asks for stands under "".
    """
    declared = said.get("outcome")
    known = declared if isinstance(declared, Mapping) and declared.get("status") == KIND else {}
    if known.get("reply"):
        return {"": tuple(known.get("missing") or ("answer",))}
    return {known["tool"]: tuple(known["parameters"])} if known.get("tool") and known.get("parameters") else {}


def wanted_schema(schema: Mapping[str, Any], parameters: Sequence[str]) -> dict[str, Any]:
    """JSON Schema of an object with exactly these parameters of a tool."""
    known = schema.get("properties")
    properties = {name: (known.get(name, {}) if isinstance(known, Mapping) else {}) for name in parameters}
    shared = {key: schema[key] for key in _DEFINITIONS if key in schema}
    return {
        "type": "object",
        "properties": properties,
        "required": list(parameters),
        "additionalProperties": False,
        **shared,
    }


def input_question(step_id: str, tool: str, schema: Mapping[str, Any], why: str, problem: str = "") -> dict[str, Any]:
    """The payload of the interrupt; ``problem`` says what was wrong with the last answer."""
    return {
        "type": KIND,
        "step_id": step_id,
        "agent": tool.partition("/")[0],
        "tool": tool,
        "parameters": list(schema["properties"]),
        "schema": dict(schema),
        "description": f"Step {step_id}: {why}.",
        "decisions": ["give", "leave"],
        **({"problem": problem} if problem else {}),
    }


def input_answers(schema: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of the answers, from which a client can build a form."""
    return {"oneOf": [answer_form("give", {"values": dict(schema)}, ["values"]), answer_form("leave")]}


def given_values(answer: object) -> dict[str, Any] | None:
    """The values of an answer; None without values, which leaves the step as it is."""
    values = answer.get("values") if isinstance(answer, Mapping) else None
    return {str(name): value for name, value in values.items()} if isinstance(values, Mapping) else None


def wrong_values(schema: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Why values do not fit the ``wanted_schema``; empty if they do.

    Values that cannot be validated here are validated again before the call is sent.
    """
    return "; ".join(fit_of(schema, values).errors)
