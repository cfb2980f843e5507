"""Asks a person at the terminal about calls; shows every key of the arguments, and shortens long texts."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from callsheet.agents.calls.question_text import inexact, shown_text, shown_value, whole_value
from callsheet.agents.calls.review import TOOK_EFFECT, AnswerError, DecisionType, decision_on, each_call, flat
from callsheet.graphs.errors import TrustError
from callsheet.graphs.sources.loading import starts_in
from callsheet.graphs.storage import yes_from_environment
from callsheet.graphs.text.hidden import escaped_line
from callsheet.graphs.trust.consent import CONNECTS, Agreements, belief_digest, believable, doing

if TYPE_CHECKING:
    from callsheet.graphs import Loaded

_ALWAYS = {"t": "always for this tool"}
_LATER = {"q": "later"}
_SEVERAL = {"a": "all", **_ALWAYS, "e": "each", "n": "none", **_LATER}
_ONE = {"y": "yes", **_ALWAYS, "n": "no", "e": "edit", "r": "respond", **_LATER}
_NEW = {"y": "yes", "n": "no", "w": "whole definition", **_LATER}
_OUTCOME = {"d": "it was done", "n": "it was not, send it again", "g": "give up", **_LATER}
_WORDS = {"approve": {"all", "yes"}, "reject": {"none", "no"}, "edit": {"edit"}, "respond": {"respond"}}
_TYPES = ("tool_approval", "unknown_outcome", "needs_input", "new_tool", "question")
_ALIKE = ("tool", "why", "problem", "decisions", "always")
"""What calls have in common that are one question."""


def has_terminal() -> bool:
    """Returns whether the program runs in a terminal, so that a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@dataclass(frozen=True, slots=True)
class _Asked:
    """One of the calls that an interrupt is about; of another interrupt, all of it."""

    id: str
    value: Any


def ask_person(waiting: Sequence[Any]) -> dict[str, Any]:
    """Asks about the interrupts of a run: calls of one tool together, everything else one by one.

    Returns:
        Interrupt id -> answer; without those that the person left for later, in whole or in part.
    """
    parts: dict[str, list[_Asked]] = {}
    for one in waiting:
        alone = each_call(one.value)
        names = [one.id] if len(alone) == 1 else [f"{one.id}/{place}" for place in range(len(alone))]
        parts[one.id] = [_Asked(name, value) for name, value in zip(names, alone, strict=True)]
    given = _asked([part for some in parts.values() for part in some])
    answers: dict[str, Any] = {}
    for name, some in parts.items():
        if len(some) == 1 and name in given:
            answers[name] = given[name]
        elif all(part.id in given for part in some):
            answers[name] = {"decisions": [decision for part in some for decision in given[part.id]["decisions"]]}
    return answers


def _asked(waiting: Sequence[_Asked]) -> dict[str, Any]:
    groups: dict[Any, list[Any]] = {}
    for one in waiting:
        told = flat(one.value)
        alike = [str(told.get(name, "")) for name in _ALIKE] if _kind(one) == "tool_approval" else [one.id]
        groups.setdefault(tuple(alike), []).append(one)
    return _in_turn(list(groups.values()))


def approve_all(waiting: Sequence[Any]) -> dict[str, Any]:
    """Approves all calls, except those of unknown outcome, with unchecked arguments, or that a person must confirm."""
    return {
        one.id: decision_on("approve", one.value)
        for one in waiting
        if _kind(one) == "tool_approval" and not (one.value.get("unchecked") or one.value.get("confirm"))
    }


def leave_inputs(waiting: Sequence[Any]) -> dict[str, Any]:
    """Returns the answers if nobody can be asked: missing values stay missing, and questions stay open.

    What a server asks in the middle of its call waits: a call is not made otherwise because nobody was there.
    """
    left = [one for one in waiting if _kind(one) in ("needs_input", "question") and not flat(one.value).get("server")]
    return {one.id: decision_on("reject", one.value) for one in left}


def plain_questions(waiting: Sequence[Any]) -> list[dict[str, Any]]:
    """Returns the pending interrupts as plain values."""
    return [{"id": one.id, **(one.value if _kind(one) else {"type": "", "value": one.value})} for one in waiting]


def _kind(waiting: Any) -> str:
    kind = flat(waiting.value).get("type")
    return kind if kind in _TYPES else ""


def _in_turn(groups: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Returns the answers, until a question is left for later."""
    answers: dict[str, Any] = {}
    for group in groups:
        given = _answers(group)
        answers |= given
        if len(given) < len(group):
            break
    return answers


def _answers(group: Sequence[Any]) -> dict[str, Any]:
    """Returns the answers to calls of one tool, or to one question of another type.

    Empty if they are left for later.
    """
    first = group[0]
    asked = flat(group[0].value)
    match _kind(first):
        case "tool_approval":
            return _decisions(group)
        case "unknown_outcome":
            answer = _verdict(asked)
        case "needs_input":
            answer = _values(asked)
        case "new_tool":
            answer = _acceptance(asked)
        case "question":
            answer = _reply(asked)
        case _:
            click.echo(f"\nA tool asks:\n{shown_value(first.value)}", err=True)
            answer = _own_answer(_text("Your answer, as text or as a JSON object (empty to be asked later)"))
    return {} if answer is None else {first.id: answer}


def _own_answer(text: str) -> Any:
    """Returns the answer to a question in a form of its own: an object if it is JSON; None for an empty text."""
    with suppress(json.JSONDecodeError):
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    return text or None


def _decisions(group: Sequence[Any]) -> dict[str, Any]:
    first = flat(group[0].value)
    several = len(group) > 1
    if several:
        _show_all([flat(one.value) for one in group])
    else:
        _show(first, "wants to call")
    kind: DecisionType = "approve"
    more: dict[str, Any] = {}
    match _choice(_SEVERAL if several else _ONE, first):
        case "a" | "y":
            pass
        case "t":
            more = {"always": True}
        case "n":
            kind = "reject"
            more = {"message": _text("Why (may stay empty)")}
        case "e" if several:
            return _in_turn([[one] for one in group])
        case "e":
            args = _edited(first["args"])
            if args is None:
                return _decisions(group)
            kind = "edit"
            more = {"args": args}
        case "r":
            said = _text("The answer for the worker")
            if not said:
                return _decisions(group)
            kind = "respond"
            more = {"message": said}
        case _:
            return {}
    return {one.id: decision_on(kind, one.value, **more) for one in group}


def _verdict(asked: Mapping[str, Any]) -> Any:
    _show(asked, "has called" if asked.get("sent", True) else "wants to call")
    match _choice(_OUTCOME, asked):
        case "d":
            said = _text("Its answer, if you know it (may stay empty)")
            return decision_on("respond", asked, message=said or TOOK_EFFECT)
        case "n":
            return decision_on("edit", asked)
        case "g":
            return decision_on("reject", asked)
    return None


def _acceptance(asked: Mapping[str, object]) -> dict[str, object] | None:
    """Returns whether a tool that a server has added in the run is accepted; None for later."""
    _show(asked, "wants to use")
    choice = _choice(_NEW, asked)
    if choice == "w":
        click.echo(whole_value(asked["args"]), err=True)
        choice = _choice(_NEW, asked)
    match choice:
        case "y":
            return decision_on("approve", asked)
        case "n":
            return decision_on("reject", asked, message=_text("Why (may stay empty)"))
    return None


def _values(asked: Mapping[str, Any]) -> Any:
    click.echo(err=True)
    _tell(asked, "description", "problem")
    values: dict[str, Any] = {}
    needed = asked["schema"].get("required", ())
    for name in asked["args"]:
        said, value = _asked_value(name, asked["schema"])
        if said:
            values[name] = value
        elif name in needed:
            return decision_on("reject", asked)
    return decision_on("edit", asked, args=values) if values else decision_on("reject", asked)


def _reply(asked: Mapping[str, Any]) -> Any:
    """Returns the answer to a question about the request: a text, or the number of a choice."""
    click.echo(err=True)
    _tell(asked["args"], "question")
    choices = list(map(str, asked["args"]["choices"]))
    for number, choice in enumerate(choices, 1):
        click.echo(f"  {number}  {shown_text(choice)}", err=True)
    said = _text("Your answer (empty leaves the question open)")
    chosen = choices[int(said) - 1] if said.isdecimal() and 0 < int(said) <= len(choices) else said
    return decision_on("respond", asked, message=chosen) if chosen else decision_on("reject", asked)


def _edited(args: Any) -> Any:
    """Returns the arguments after an editor, which shows all of them; None if they are no JSON."""
    text: str | None = click.edit(whole_value(args), extension=".json")
    try:
        edited = json.loads(text) if text else args
    except (ValueError, RecursionError) as error:
        click.echo(f"invalid JSON: {error}", err=True)
        return None
    refusal = inexact(edited)
    if refusal:
        click.echo(refusal.reason, err=True)
        return None
    return edited


def _show(asked: Mapping[str, Any], what: str) -> None:
    who = f"Step {asked['step_id']}" if asked["step_id"] else "The command"
    click.echo(f"\n{shown_text(f'{who} {what} ' + asked['tool'])}", err=True)
    click.echo(asked["shown"], err=True)
    _tell(asked, "why", "problem")


def _show_all(asked: Sequence[Mapping[str, Any]]) -> None:
    """Calls of one tool, each in a line of its own."""
    click.echo(f"\n{len(asked)} calls of {shown_text(asked[0]['tool'])}:", err=True)
    for one in asked:
        click.echo(escaped_line(f"  step {one['step_id']}: {shown_value(one['args'], indent=None)}"), err=True)
    _tell(asked[0], "why", "problem")


def _tell(asked: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if asked.get(name):
            click.echo(shown_text(asked[name]), err=True)


def _choice(words: Mapping[str, str], asked: Mapping[str, Any]) -> str:
    """Returns the letter of a choice, of those that the question offers."""
    hidden = set[str]().union(*(own for decision, own in _WORDS.items() if decision not in asked["decisions"]))
    hidden |= set() if asked.get("always") else {*_ALWAYS.values()}
    letters = {word: letter for letter, word in words.items() if word not in hidden}
    shown_words = ", ".join(f"{letter}={word}" for word, letter in letters.items())
    while True:
        typed: str = click.prompt(shown_words, err=True)
        meant = _letters_of(typed, letters)
        if len(meant) == 1:
            return meant[0]
        click.echo(f"{shown_text(typed)!r} is none of: {shown_words}", err=True)


def _letters_of(typed: str, letters: Mapping[str, str]) -> list[str]:
    """Returns the letters of the choices that were typed: as a letter, a word, or the beginning of one word."""
    said = typed.strip().lower()
    if said in letters.values():
        return [said]
    return [letter for word, letter in letters.items() if said and word.startswith(said)]


def _text(what: str, *, hidden: bool = False) -> str:
    return str(click.prompt(what, default="", show_default=False, hide_input=hidden, err=True))


def _asked_value(name: str, schema: Mapping[str, Any]) -> tuple[str, Any]:
    """Returns what a person types for a parameter, and its value, as text or as JSON; asks again if it does not fit."""
    from callsheet.agents.approval.questions import typed_value
    from callsheet.agents.safety.secrets import is_secret

    spec = schema["properties"].get(name, {})
    hidden = isinstance(spec, Mapping) and is_secret(name, spec)
    empty = "empty gives no answer" if name in schema.get("required", ()) else "empty leaves it out"
    about = "; ".join([*_about(spec), empty])
    while said := _text(f"{shown_text(name)} ({about})", hidden=hidden):
        try:
            return said, typed_value(schema, name, said)
        except AnswerError as error:
            click.echo("the value does not fit" if hidden else shown_text(str(error)), err=True)
    return "", None


def _about(spec: object) -> list[str]:
    """Returns what the schema of a parameter says about it, and its choices."""
    if not isinstance(spec, Mapping):
        return []
    texts: list[str] = []
    description = spec.get("description")
    if isinstance(description, str) and description.strip():
        texts.append(shown_text(" ".join(description.split())).rstrip("."))
    choices = spec.get("enum")
    if isinstance(choices, list) and choices:
        texts.append(shown_text(f"one of {', '.join(map(str, choices))}"))
    return texts


def ask_consent(sources: Sequence[str], *, yes: bool) -> bool:
    """Asks at the terminal for consent to what these catalogs would start or read, and stores it.

    If nobody can be asked, loading fails later and says what to do.

    Returns:
        Whether there is consent to something new.

    Raises:
        TrustError: The person does not consent to something without which the catalog cannot be read.
    """
    if yes or yes_from_environment() or not has_terminal():
        return False
    agreements = Agreements()
    known = agreements.known()
    # Two entries that start the same command are two servers, and both are shown.
    starts = {str(start): start for source in sources for start in starts_in(source)}
    new = [start for start in starts.values() if start.digest not in known]
    if not new:
        return False
    click.echo(f"The catalog wants to {doing(new)}:\n" + "\n".join(f"  {start}" for start in new), err=True)
    if not click.confirm("Allow this now and in future?", err=True):
        if all(start.does == CONNECTS for start in new):
            return False  # the other servers are used
        raise TrustError("there is no consent, so nothing was started or read")
    agreements.add(new)
    return True


def ask_trust(loaded: Loaded, *, yes: bool) -> bool:
    """Asks once whether the read-only marks of servers and specifications are trusted, and stores the answer.

    All tools are in one list with one answer.

    Returns:
        Whether another server or specification is believed from now on.
    """
    if yes or yes_from_environment() or not has_terminal():
        return False
    agreements = Agreements()
    known = agreements.known()
    new = {
        agent: marked
        for agent, marked in believable(loaded.catalog, loaded.connections).items()
        if not (loaded.trusts(agent) or known & {belief_digest(marked.server), belief_digest(marked.server, yes=False)})
    }
    if not new:
        return False
    lines = [escaped_line(f"  {agent}: {', '.join(marked.tools)}") for agent, marked in new.items()]
    click.echo("\nThese tools only read, as their servers or specifications say:\n" + "\n".join(lines), err=True)
    catalogs = [word for name in loaded.label.splitlines() for word in ("--catalog", name)]
    some = shlex.join(["callsheet", "trust", "allow", *list(new)[:1], *catalogs])
    click.echo(f"To believe some of these agents, answer no, and name them, as in `{some}`.", err=True)
    answer = click.confirm("Trust them, and call these tools without asking?", err=True)
    agreements.add(belief_digest(marked.server, yes=answer) for marked in new.values())
    return answer
