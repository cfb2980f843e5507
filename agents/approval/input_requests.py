"""Values that a step lacks: what a person is asked for, and how the answer is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callsheet.agents.safety.arguments import misfits

KIND = "needs_input"
"""The ``type`` of the question."""
_DEFINITIONS = ("$defs", "definitions")


def missing_values(said: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Tool id -> the parameters that a worker has no values for.

    Args:
        said: ``additional_kwargs`` of its last message.
    """
    declared = said.get("outcome")
    known = declared if isinstance(declared, Mapping) and declared.get("status") == KIND else {}
    return {known["tool"]: tuple(known["parameters"])} if known.get("tool") and known.get("parameters") else {}


def wanted_schema(schema: Mapping[str, Any], parameters: Sequence[str]) -> dict[str, Any]:
    """JSON Schema of an object with these parameters of a tool and no others.

    Args:
        schema: JSON Schema of the tool's arguments.
        parameters: Names of those that are wanted.
    """
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
    """What the interrupt shows.

    Args:
        step_id: The step.
        tool: Id of the tool that lacks values.
        schema: The ``wanted_schema``.
        why: What the step says of it.
        problem: What was wrong with the last answer.
    """
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
    """JSON Schema of the answers, from which a client can make a form."""
    give = {"type": {"const": "give"}, "values": dict(schema)}
    return {
        "oneOf": [
            {"type": "object", "title": "give", "properties": give, "required": ["type", "values"]},
            {"type": "object", "title": "leave", "properties": {"type": {"const": "leave"}}, "required": ["type"]},
        ]
    }


def given_values(answer: object) -> dict[str, Any] | None:
    """The values of an answer; None where it has none, which leaves the step as it is."""
    values = answer.get("values") if isinstance(answer, Mapping) else None
    return {str(name): value for name, value in values.items()} if isinstance(values, Mapping) else None


def wrong_values(schema: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Why values do not fit the ``wanted_schema``; empty if they do.

    What cannot be checked here is checked again, and told, before the call is made.
    """
    return "; ".join(misfits(schema, values))
