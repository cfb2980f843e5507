"""Questions of a call or a step to a person, and the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

from langchain_core.messages import ToolCall
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.calls.plan import answer_form
from callsheet.agents.registry.binding import BoundTool
from callsheet.agents.safety.arguments import fit_of
from callsheet.graphs.catalog.errors import CallsheetError
from callsheet.graphs.text.json_schema import shown_form
from callsheet.graphs.trust.pins import digest

Kind = Literal["tool_approval", "unknown_outcome"]
MOST_WRONG = 3
"""Answers in a row that are none of those offered, after which a question is not asked again."""


class AnswerError(CallsheetError, ValueError):
    """A person's answer is invalid, or does not fit its call."""


class Decision(BaseModel):
    """A decision on a call that was not sent yet, in the terms of LangChain's human-in-the-loop middleware.

    Attributes:
        type: ``approve`` sends the call; ``edit`` changes its arguments and asks again; ``reject`` does not send it;
            ``respond`` does not send it either, and returns ``message`` as its answer.
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
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["done", "not_done", "give_up"]
    message: str = Field(default="", max_length=100_000)
    hash: str | None = None


Answer = TypeVar("Answer", Decision, Verdict)
_FORMS: Mapping[Kind, type[Decision | Verdict]] = {"tool_approval": Decision, "unknown_outcome": Verdict}


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

    ``args`` are as they would be, or were, sent; ``why`` says why a person is asked, ``mark`` is the ``fingerprint``,
    ``problem`` what was wrong with the last answer, ``unchecked`` why the arguments could not be validated.
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
        "decisions": list(_words(_FORMS[kind])),
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
    forms = [
        answer_form(word, {**more.get(word, {}), "hash": text}, required.get(word, ())) for word in _words(_FORMS[kind])
    ]
    return {"oneOf": forms}


def read_decision(answer: object, name: str) -> Decision:
    """Parses an answer about a call that was not sent yet; ``name`` is what the model calls the tool.

    It is ``{"type": "approve"}`` and so on, the type alone, a boolean, or LangChain's ``{"decisions": [...]}`` or
    ``{"edited_action": {"name", "args"}}``.

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
    """Parses an answer about a call whose outcome is unknown; raises as ``read_decision``."""
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
        words = " or ".join(_words(form))
        raise AnswerError(f'{where}: {first["msg"]}; an answer is {{"type": {words}, ...}}') from error


def _words(form: type[Decision | Verdict]) -> tuple[str, ...]:
    return get_args(form.model_fields["type"].annotation)


NEEDS_INPUT = "needs_input"
"""The ``type`` of the question."""


def missing_values(outcome: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Tool id -> parameters without a value, from a worker's declared outcome; under "", what a model asks for."""
    if outcome.get("status") != NEEDS_INPUT:
        return {}
    if outcome.get("reply"):
        return {"": tuple(outcome.get("missing") or ("answer",))}
    wanted = tuple(outcome.get("parameters") or ())
    return {outcome["tool"]: wanted} if wanted else {}


def wanted_schema(schema: Mapping[str, Any], parameters: Sequence[str]) -> dict[str, Any]:
    """JSON Schema of an object with exactly these parameters of a tool, for a person; ``schema`` has no references."""
    properties = {name: schema["properties"].get(name, {}) for name in parameters}
    form = {"type": "object", "properties": properties, "required": list(parameters), "additionalProperties": False}
    return shown_form(form)


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
    """Why values do not fit the ``wanted_schema``; empty if they do, or if only the call can tell."""
    return "; ".join(fit_of(schema, values).errors)
