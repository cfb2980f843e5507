"""Questions of a call or a step to a person, and the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from langchain_core.messages import ToolCall
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.calls.questions import answer_form
from callsheet.agents.registry.binding import BoundTool
from callsheet.agents.safety.arguments import fit_of
from callsheet.graphs.catalog.errors import CallsheetError
from callsheet.graphs.trust.pins import digest

Kind = Literal["tool_approval", "unknown_outcome"]


class AnswerError(CallsheetError, ValueError):
    """A person's answer is invalid, or does not fit its call."""


class Decision(BaseModel):
    """A decision on a call that was not sent yet, in the terms of LangChain's human-in-the-loop middleware.

    Attributes:
        type: ``approve`` sends the call; ``edit`` changes its arguments and asks again; ``reject`` does not send it;
            ``respond`` does not send it either, and returns ``message`` as its answer.
        args: The arguments of an ``edit``.
        message: The reason of a ``reject``, or the answer of a ``respond``.
        hash: The hash of the question, to bind the answer to exactly that call.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["approve", "edit", "reject", "respond"]
    args: dict[str, Any] | None = None
    message: str = ""
    hash: str | None = None


class Verdict(BaseModel):
    """A decision on a call whose outcome is unknown.

    Attributes:
        type: ``done`` if it took effect; ``not_done`` if it did not, which sends it again; ``give_up`` to leave it.
        message: The tool's answer, if it is known.
        hash: As in ``Decision``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["done", "not_done", "give_up"]
    message: str = Field(default="", max_length=100_000)
    hash: str | None = None


Answer = TypeVar("Answer", Decision, Verdict)


def fingerprint(tool_id: str, pin: str, args: Mapping[str, Any]) -> str:
    """SHA-256 of what an approval covers: the tool, its definition, and the arguments."""
    return digest([tool_id, pin, args])


def question(
    kind: Kind,
    call: ToolCall,
    bound: BoundTool,
    args: Mapping[str, Any],
    *,
    step_id: str,
    why: str,
    mark: str,
    problem: str = "",
    unchecked: str = "",
) -> dict[str, Any]:
    """The payload of the interrupt.

    Args:
        kind: Whether a call needs approval, or its outcome is unknown.
        call: The call as the model made it.
        bound: The tool.
        args: The arguments as they would be, or were, sent.
        step_id: The step of the plan; empty without a plan.
        why: Why a person is asked.
        mark: The ``fingerprint``.
        problem: What was wrong with the last answer about this call.
        unchecked: Why the arguments were not validated against the tool's schema; empty if they were.
    """
    who = f"Step {step_id}" if step_id else "The agent"
    what = "wants to call" if kind == "tool_approval" else "has called"
    return {
        "type": kind,
        "step_id": step_id,
        "agent": bound.agent,
        "tool": bound.id,
        "name": call["name"],
        "args": dict(args),
        "why": why,
        "hash": mark,
        "tool_call_id": call["id"] or "",
        "description": f"{who} {what} {bound.id}: {why.removesuffix('.')}.",
        "decisions": list(_types(kind)),
        **({"problem": problem} if problem else {}),
        **({"unchecked": unchecked} if unchecked else {}),
    }


def answer_schema(kind: Kind, args_schema: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of the answers, from which a client can build a form."""
    text = {"type": "string"}
    more: dict[str, dict[str, Any]] = {
        "edit": {"args": dict(args_schema)},
        **{word: {"message": text} for word in ("reject", "respond", "done")},
    }
    required = {"edit": ["args"], "respond": ["message"]}
    forms = [answer_form(word, {**more.get(word, {}), "hash": text}, required.get(word, ())) for word in _types(kind)]
    return {"oneOf": forms}


def read_decision(answer: object, name: str) -> Decision:
    """Parses an answer about a call that was not sent yet.

    Args:
        answer: ``{"type": "approve"}`` and so on, the type alone, a boolean, or LangChain's form of an answer
            (``{"decisions": [...]}``, ``{"edited_action": {"name", "args"}}``).
        name: The name by which the model called the tool.

    Raises:
        AnswerError: It is invalid; the message names the valid answers.
    """
    if isinstance(answer, bool):
        return Decision(type="approve" if answer else "reject")
    plain = _plain(answer)
    if isinstance(edited := plain.get("edited_action"), Mapping):
        if edited.get("name", name) != name:
            raise AnswerError(f"an edit changes the arguments of {name}, it cannot call {edited['name']!r} instead")
        plain = {**{key: value for key, value in plain.items() if key != "edited_action"}, "args": edited.get("args")}
    decision = _checked(Decision, plain)
    if decision.type == "edit" and decision.args is None:
        raise AnswerError('an edit needs "args", an object with all arguments')
    if decision.type == "respond" and not decision.message:
        raise AnswerError('a respond needs a "message", which the model gets as the answer')
    return decision


def read_verdict(answer: object) -> Verdict:
    """Parses an answer about a call whose outcome is unknown.

    Raises:
        AnswerError: It is invalid; the message names the valid answers.
    """
    return _checked(Verdict, _plain(answer))


def _plain(answer: object) -> dict[str, Any]:
    match answer:
        case str():
            return {"type": answer.strip()}
        case {"decisions": [one]}:
            return _plain(one)
        case Mapping():
            return {str(key): value for key, value in answer.items()}
        case _:
            return {"type": answer}


def _checked(form: type[Answer], plain: Mapping[str, Any]) -> Answer:
    try:
        return form.model_validate(dict(plain))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        words = " or ".join(form.model_json_schema()["properties"]["type"]["enum"])
        raise AnswerError(f'{where}: {first["msg"]}; an answer is {{"type": {words}, ...}}') from error


def _types(kind: Kind) -> Sequence[str]:
    form = Decision if kind == "tool_approval" else Verdict
    words: list[str] = form.model_json_schema()["properties"]["type"]["enum"]
    return words


NEEDS_INPUT = "needs_input"
"""The ``type`` of the question."""
_DEFINITIONS = ("$defs", "definitions")


def missing_values(said: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Tool id -> parameters without a value, from ``additional_kwargs`` of a worker's last message.

    What a model asks for stands under "".
    """
    declared = said.get("outcome")
    known = declared if isinstance(declared, Mapping) and declared.get("status") == NEEDS_INPUT else {}
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
        "type": NEEDS_INPUT,
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
