"""Questions to a person in the form of LangChain's human-in-the-loop middleware, and the decisions that answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.calls.question_text import shown_value
from callsheet.graphs.errors import CallsheetError

DecisionType = Literal["approve", "edit", "reject", "respond"]
TOOK_EFFECT = "A person says that this call took effect; what it answered is not known."
"""The answer of a call of unknown outcome if a person only knows that it took effect."""


class AnswerError(CallsheetError, ValueError):
    """Raised if a person's answer is invalid or does not fit its question."""


class Action(BaseModel):
    """A call as a person has edited it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    args: dict[str, Any]


class Decision(BaseModel):
    """A decision in LangChain's form, with two fields of ours.

    Attributes:
        type: ``approve`` sends the call; ``edit`` changes its arguments; ``reject`` does not send it; ``respond`` does
            not send it either, and returns ``message`` as its answer.
        message: The reason of a ``reject``, or the answer of a ``respond``.
        always: With ``approve``: later calls of the tool are approved too, until it changes or this is revoked.
        hash: The hash of the question, to bind the answer to exactly that call.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: DecisionType
    edited_action: Action | None = None
    message: str = Field(default="", max_length=100_000)
    always: bool = False
    hash: str | None = None

    @property
    def args(self) -> dict[str, Any] | None:
        """Returns the new arguments of an ``edit``."""
        return self.edited_action.args if self.edited_action else None


def review_request(
    kind: str, name: str, args: Mapping[str, Any], description: str, allowed: Sequence[DecisionType], **more: Any
) -> dict[str, Any]:
    """Returns the payload of an interrupt: LangChain's ``HITLRequest`` with one action, and additional fields of ours.

    ``kind`` is the value of ``type``; fields in ``more`` that are None are left out. If ``shown`` is one of them, the
    text of the arguments by ``shown_value``, it is appended to the description, because clients of LangChain's form
    show the description unchanged, while they may lose digits of ``args``.
    """
    shown = more.get("shown")
    told = f"{description}\nArguments: {shown}" if shown else description
    return {
        "type": kind,
        "action_requests": [{"name": name, "args": dict(args), "description": told}],
        "review_configs": [{"action_name": name, "allowed_decisions": list(allowed)}],
        **{field: value for field, value in more.items() if value is not None},
    }


def review_answers(
    name: str, allowed: Sequence[DecisionType], args_schema: Mapping[str, Any] | None = None, *, always: bool = False
) -> dict[str, Any]:
    """Returns the JSON Schema of the answers, from which a client can build a form."""
    text = {"type": "string"}
    action = {"name": {"const": name}, "args": dict(args_schema or {"type": "object"})}
    edited = {"type": "object", "properties": action, "required": ["name", "args"]}
    own: Mapping[DecisionType, dict[str, Any]] = {
        "approve": {"always": {"type": "boolean", "title": "Always for this tool"}} if always else {},
        "edit": {"edited_action": edited},
        "reject": {"message": text},
        "respond": {"message": {**text, "minLength": 1}},
    }
    needed = {"edit": ["edited_action"], "respond": ["message"]}
    forms = [
        {
            "type": "object",
            "title": word,
            "properties": {"type": {"const": word}, **own[word], "hash": text},
            "required": ["type", *needed.get(word, ())],
        }
        for word in allowed
    ]
    decisions = {"type": "array", "items": {"oneOf": forms}, "minItems": 1, "maxItems": 1}
    return {"type": "object", "properties": {"decisions": decisions}, "required": ["decisions"]}


def review_several(questions: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Returns the payload of one interrupt about several calls, with an action and a decision for each.

    ``questions`` are the payloads of the single calls, by ``review_request``. Their additional fields become the items
    of ``calls``, in the same order; fields in ``more`` concern all calls and are left out if they are None.
    """
    form = ("type", "action_requests", "review_configs")
    return {
        "type": questions[0]["type"],
        "action_requests": [action for one in questions for action in one["action_requests"]],
        "review_configs": [config for one in questions for config in one["review_configs"]],
        "calls": [{field: value for field, value in one.items() if field not in form} for one in questions],
        **{field: value for field, value in more.items() if value is not None},
    }


def several_answers(forms: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the JSON Schema of the answers about several calls.

    ``forms`` are the schemas for the single calls, by ``review_answers``.
    """
    items = [form["properties"]["decisions"]["items"] for form in forms]
    decisions = {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    return {"type": "object", "properties": {"decisions": decisions}, "required": ["decisions"]}


def each_call(value: Any) -> list[Any]:
    """Splits the payload of a question about several calls into one payload per call.

    Any other payload is returned as the only item. Payloads of LangChain's own middleware are split too.
    """
    match value:
        case {"action_requests": [_, _, *_] as actions, "review_configs": list() as configs}:
            shared = {name: item for name, item in value.items() if name not in ("calls", "confirm", "unchecked")}
            allowed = {config["action_name"]: config for config in configs}
            calls = value.get("calls") or [{} for _ in actions]
            return [
                {**shared, **own, "action_requests": [action], "review_configs": [allowed[action["name"]]]}
                for action, own in zip(actions, calls, strict=True)
            ]
    return [value]


def flat(value: Any) -> Mapping[str, Any]:
    """Returns a payload with the fields of its action at the top level: ``name``, ``args``, ``shown`` and others.

    ``shown`` is the text of the arguments for a person. If the payload is about several calls, ``args`` lists them all,
    and ``decisions`` are those that every call allows. Any other payload is returned unchanged, or empty if it is no
    object.
    """
    match value:
        case {"action_requests": [Mapping() as action], "review_configs": [{"allowed_decisions": list() as allowed}]}:
            shown = value.get("shown") or shown_value(action.get("args", {}))
            return {**value, **action, "decisions": allowed, "shown": shown}
        case {"action_requests": [_, _, *_], "review_configs": list()}:
            alone = [flat(one) for one in each_call(value)]
            common = [word for word in alone[0]["decisions"] if all(word in one["decisions"] for one in alone)]
            listed = [{"tool": one.get("tool") or one["name"], "args": one["args"]} for one in alone]
            shown = "\n".join(f"{one.get('tool') or one['name']}: {one['shown']}" for one in alone)
            told = f"{value.get('why') or f'{len(alone)} calls wait for a decision.'}\n{shown}"
            about = {"name": "", "args": {"calls": listed}, "shown": shown, "description": told, "decisions": common}
            return {**value, **about}
        case Mapping():
            return value
        case _:
            return {}


def decision_on(kind: DecisionType, asked: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Returns the answer that makes this decision on each call of a payload; ``args`` are those of an edit."""
    decisions: list[dict[str, Any]] = []
    for one in each_call(asked):
        own = dict(more)
        if kind == "edit":
            told = flat(one)
            own["edited_action"] = {"name": told["name"], "args": own.pop("args", told["args"])}
        bound = {"hash": one["hash"]} if one.get("hash") else {}
        decisions.append({"type": kind, **bound, **own})
    return {"decisions": decisions}


def read_decisions(answer: object, asked: Mapping[str, Any]) -> list[Decision]:
    """Parses the answer about several calls: one decision per call in their order, or one decision for all.

    Raises:
        AnswerError: One is invalid, not allowed, or about another call than the one in its place.
    """
    calls = [flat(one) for one in each_call(asked)]
    match answer:
        case {"decisions": list() as given}:
            pass
        case Mapping() as one:
            given = [one] * len(calls)
        case _:
            given = []
    if len(given) != len(calls):
        told = f"an answer holds {len(calls)} decisions, one for each call in their order, and this one {len(given)}"
        raise AnswerError(f'{told}: {{"decisions": [{{"type": ...}}, ...]}}')
    decisions: list[Decision] = []
    for number, (call, one) in enumerate(zip(calls, given, strict=True), 1):
        try:
            decision = read_decision(one, call["name"], call["decisions"])
        except AnswerError as error:
            raise AnswerError(f"decision {number}: {error}") from error
        if decision.hash not in (None, call["hash"]):
            raise AnswerError(f"decision {number} has the hash of another call: look at the calls again")
        if decision.always:
            raise AnswerError(f'decision {number}: "always" is not allowed for this call: approve it without "always"')
        decisions.append(decision)
    return decisions


def read_decision(answer: object, name: str, allowed: Sequence[DecisionType]) -> Decision:
    """Parses the answer about one action: ``{"decisions": [...]}`` with one decision, or the decision itself.

    Raises:
        AnswerError: It is invalid, or not ``allowed``; the message names the valid answers.
    """
    words = " or ".join(allowed)
    match answer:
        case [Mapping() as one]:
            plain = _of_inbox(one)
        case {"decisions": [Mapping() as one]} | (Mapping() as one) if "decisions" not in one:
            # LangGraph's SDK for JavaScript sends both spellings.
            plain = {"edited_action" if key == "editedAction" else str(key): value for key, value in one.items()}
        case _:
            raise AnswerError(f'an answer is {{"decisions": [{{"type": {words}, ...}}]}}, with one decision')
    try:
        decision = Decision.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise AnswerError(f'{where}: {first["msg"]}; a decision is {{"type": {words}, ...}}') from error
    if decision.type not in allowed:
        raise AnswerError(f"{decision.type!r} is not allowed for this call; choose one of: {words}")
    if decision.type == "edit" and decision.edited_action is None:
        raise AnswerError('an edit needs "edited_action", with the name of the tool and all arguments')
    if decision.edited_action is not None and decision.edited_action.name != name:
        wrong = decision.edited_action.name
        raise AnswerError(f"an edit changes the arguments of {name}, it cannot call {wrong!r} instead")
    if decision.type == "respond" and not decision.message:
        raise AnswerError('a respond needs a "message", which is the answer')
    return decision


def _of_inbox(response: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a decision from the form of the agent inbox, ``langgraph.prebuilt.interrupt.HumanResponse``.

    The inbox offers a response in words where a call can be rejected.
    """
    match response:
        case {"type": "accept"}:
            return {"type": "approve"}
        case {"type": "edit", "args": {"action": name, "args": args}}:
            return {"type": "edit", "edited_action": {"name": name, "args": args}}
        case {"type": "response", "args": str() as message}:
            return {"type": "reject", "message": message}
        case {"type": "ignore"}:
            return {"type": "reject"}
    return dict(response)
