"""Asks a person at the terminal about calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from callsheet.graphs.catalog.errors import TrustError
from callsheet.graphs.catalog.loading import starts_in
from callsheet.graphs.storage import yes_from_environment
from callsheet.graphs.trust.consent import Agreements, doing
from callsheet.orchestrator.cli.output.value_output import shown_calls, shown_text, shown_value

_LEAVE = {"type": "leave"}
_GROUP = {"a": "all", "e": "each", "n": "none", "q": "ask later"}
_APPROVAL = {"y": "yes", "n": "no", "e": "edit", "r": "respond", "q": "ask later"}
_OUTCOME = {"d": "it was done", "n": "it was not, send it again", "g": "give up", "q": "ask later"}


def has_terminal() -> bool:
    """Whether there is a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_person(waiting: Sequence[Any]) -> dict[str, Any]:
    """Asks about the interrupts of a run: about calls of one tool together, about everything else one by one.

    Returns:
        Interrupt id -> answer; without those that the person left for later.
    """
    groups: dict[tuple[str, ...], list[Any]] = {}
    for found in waiting:
        groups.setdefault(_subject(found), []).append(found)
    answers: dict[str, Any] = {}
    for group in groups.values():
        given = _decisions(group) if len(group) > 1 else _one_by_one(group)
        answers |= given
        if len(given) < len(group):
            break
    return answers


def approve_all(waiting: Sequence[Any]) -> dict[str, Any]:
    """The answers of a user who approves everything.

    They do not cover calls with an unknown outcome, nor arguments that could not be validated, nor calls that a person
    must confirm.
    """
    return {
        found.id: _approved(found.value)
        for found in waiting
        if _kind(found) == "tool_approval" and not (found.value.get("unchecked") or found.value.get("confirm"))
    }


def leave_inputs(waiting: Sequence[Any]) -> dict[str, Any]:
    """The answers if nobody can be asked: steps without values do not change, and questions are left open."""
    return {found.id: dict(_LEAVE) for found in waiting if _kind(found) in ("needs_input", "question")}


def described(waiting: Sequence[Any]) -> list[dict[str, Any]]:
    """The pending interrupts as plain values."""
    return [
        {"id": found.id, **(found.value if _kind(found) else {"type": "", "value": found.value})} for found in waiting
    ]


def _kind(found: Any) -> str:
    value = found.value
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if kind in ("tool_approval", "unknown_outcome", "needs_input", "question") else ""


def _subject(found: Any) -> tuple[str, ...]:
    """What the approvals of one question have in common; every other interrupt is a question of its own."""
    if _kind(found) != "tool_approval":
        return (found.id,)
    return tuple(found.value.get(name, "") for name in ("tool", "why", "problem"))


def _decisions(group: Sequence[Any]) -> dict[str, Any]:
    """The answers to several calls of one tool."""
    first, calls = group[0].value, [found.value["args"] for found in group]
    steps = ", ".join(dict.fromkeys(str(found.value["step_id"]) for found in group))
    click.echo(f"\n{len(group)} calls of {shown_text(first['tool'])}{shown_calls(calls)}", err=True)
    click.echo(f"Steps: {shown_text(steps)}", err=True)
    _show_reason(first)
    match _choice(_GROUP):
        case "a":
            return {found.id: _approved(found.value) for found in group}
        case "e":
            return _one_by_one(group)
        case "n":
            refusal = _refused()
            return {found.id: refusal for found in group}
    return {}


def _one_by_one(waiting: Sequence[Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for found in waiting:
        answer = _answer(found.value)
        if answer is None:
            break
        answers[found.id] = answer
    return answers


def _answer(value: Any) -> Any:
    match value:
        case {"type": "tool_approval"}:
            return _decision(value)
        case {"type": "unknown_outcome"}:
            return _verdict(value)
        case {"type": "needs_input"}:
            return _values(value)
        case {"type": "question"}:
            return _reply(value)
        case _:  # an interrupt of a tool itself
            click.echo(f"\nA tool asks:\n{shown_value(value)}", err=True)
            return _text("Your answer (empty to be asked later)")


def _decision(asked: Mapping[str, Any]) -> Any:
    _show(asked, "wants to call")
    match _choice(_APPROVAL):
        case "y":
            return _approved(asked)
        case "n":
            return _refused()
        case "e":
            return _edit(asked)
        case "r":
            said = _text("The answer for the worker")
            return {"type": "respond", "message": said} if said else _decision(asked)
    return None


def _approved(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "approve", "hash": asked["hash"]}


def _refused() -> dict[str, Any]:
    return {"type": "reject", "message": _text("Why (may stay empty)") or ""}


def _verdict(asked: Mapping[str, Any]) -> Any:
    _show(asked, "has called")
    match _choice(_OUTCOME):
        case "d":
            return {"type": "done", "message": _text("Its answer, if you know it (may stay empty)") or ""}
        case "n":
            return {"type": "not_done", "hash": asked["hash"]}
        case "g":
            return {"type": "give_up"}
    return None


def _values(asked: Mapping[str, Any]) -> Any:
    click.echo(f"\n{shown_text(asked['description'])}", err=True)
    _show_problem(asked)
    values: dict[str, Any] = {}
    for name in asked["parameters"]:
        said, value = _asked_value(name, asked["schema"])
        if not said:
            return _LEAVE
        values[name] = value
    return {"type": "give", "values": values}


def _reply(asked: Mapping[str, Any]) -> Any:
    """The answer to a question about the request: a text, or the number of a choice."""
    click.echo(f"\n{shown_text(asked['question'])}", err=True)
    choices = list(map(str, asked["choices"]))
    for number, choice in enumerate(choices, 1):
        click.echo(f"  {number}  {shown_text(choice)}", err=True)
    said = _text("Your answer (empty leaves the question open)") or ""
    chosen = choices[int(said) - 1] if said.isdecimal() and 0 < int(said) <= len(choices) else said
    return {"type": "answer", "answer": chosen} if chosen else dict(_LEAVE)


def _edit(asked: Mapping[str, Any]) -> Any:
    text: str | None = click.edit(
        json.dumps(asked["args"], ensure_ascii=False, indent=2, default=str), extension=".json"
    )
    try:
        args = json.loads(text) if text else asked["args"]
    except ValueError as error:
        click.echo(f"invalid JSON: {error}", err=True)
        return _decision(asked)
    return {"type": "edit", "args": args}


def _show(asked: Mapping[str, Any], what: str) -> None:
    click.echo(f"\n{shown_text('Step {} {} {}'.format(asked['step_id'], what, asked['tool']))}", err=True)
    click.echo(shown_value(asked["args"]), err=True)
    _show_reason(asked)


def _show_reason(asked: Mapping[str, Any]) -> None:
    click.echo(shown_text(asked["why"]), err=True)
    _show_problem(asked)


def _show_problem(asked: Mapping[str, Any]) -> None:
    if asked.get("problem"):
        click.echo(shown_text(asked["problem"]), err=True)


def _choice(words: Mapping[str, str]) -> str:
    shown_words = ", ".join(f"{letter}={word}" for letter, word in words.items())
    letters = {word: letter for letter, word in words.items()}
    chosen: str = click.prompt(shown_words, type=click.Choice([*words, *letters]), show_choices=False, err=True)
    return letters.get(chosen, chosen)


def _text(what: str) -> str | None:
    said: str = click.prompt(what, default="", show_default=False, err=True)
    return said or None


def _asked_value(name: str, schema: Mapping[str, Any]) -> tuple[str, Any]:
    """What a person types for a parameter, and its value; asks again if it does not fit."""
    from callsheet.agents.approval.questions import wanted_schema, wrong_values
    from callsheet.agents.safety.secrets import is_secret

    one = wanted_schema(schema, [name])
    spec = one["properties"][name]
    hidden = isinstance(spec, Mapping) and is_secret(name, spec)
    while said := _typed(f"{shown_text(name)} (empty leaves the step as it is)", hidden=hidden):
        problem = ""
        for value in _readings(said):
            if not (problem := wrong_values(one, {name: value})):
                return said, value
        click.echo("the value does not fit" if hidden else shown_text(problem), err=True)
    return "", None


def _readings(said: str) -> list[Any]:
    """The input as a text, and as JSON if it is valid."""
    try:
        return [said, json.loads(said)]
    except ValueError:
        return [said]


def _typed(what: str, *, hidden: bool) -> str:
    """The input of a person; empty at the end of input."""
    try:
        said: str = click.prompt(what, default="", show_default=False, hide_input=hidden, err=True)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo(err=True)
        return ""
    return said


def ask_consent(sources: Sequence[str], *, yes: bool) -> None:
    """Asks at the terminal for consent to what these catalogs would start or read, and stores it.

    If nobody can be asked, loading the catalog fails with an error that says what to do.

    Raises:
        TrustError: The person does not agree.
    """
    if yes or yes_from_environment() or not has_terminal():
        return
    agreements = Agreements()
    known = agreements.known()
    starts = {start.digest: start for source in sources for start in starts_in(source)}
    new = [start for digest, start in starts.items() if digest not in known]
    if not new:
        return
    click.echo(f"The catalog wants to {doing(new)}:\n" + "\n".join(f"  {start}" for start in new), err=True)
    if not click.confirm("Agree, now and in future?", err=True):
        raise TrustError("there is no consent, so nothing was started or read")
    agreements.add(new)
