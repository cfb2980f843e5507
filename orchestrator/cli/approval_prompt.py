"""Asks a person at the terminal about calls: every key of what is agreed to is shown, long texts are shortened."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from callsheet.agents.calls.review import TOOK_EFFECT, decided, flat
from callsheet.graphs.catalog.errors import TrustError
from callsheet.graphs.catalog.loading import starts_in
from callsheet.graphs.storage import yes_from_environment
from callsheet.graphs.text.sanitizing import escaped, one_line
from callsheet.graphs.trust.consent import Agreements, believable, believed, doing

if TYPE_CHECKING:
    from callsheet.graphs import Loaded

_ALWAYS = {"t": "always for this tool"}
_GROUP = {"a": "all", **_ALWAYS, "e": "each", "n": "none", "q": "ask later"}
_APPROVAL = {"y": "yes", **_ALWAYS, "n": "no", "e": "edit", "r": "respond", "q": "ask later"}
_OFFERED = {"y": "approve", "n": "reject", "r": "respond", "a": "approve"}
_OUTCOME = {"d": "it was done", "n": "it was not, send it again", "g": "give up", "q": "ask later"}
_LONGEST, _LONGEST_TEXT, _LONGEST_KEY, _WIDTH = 4_000, 600, 120, 100
_MOST_ITEMS, _LAST_ITEMS = 500, 100
_NOTE = "({:,} characters in all: each text is shortened, every key is shown)"


_ALIKE = ("tool", "why", "problem", "decisions", "always")
"""What calls have in common that are one question."""


def has_terminal() -> bool:
    """Whether there is a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_person(waiting: Sequence[Any]) -> dict[str, Any]:
    """Asks about the interrupts of a run: about calls of one tool together, about everything else one by one.

    Returns:
        Interrupt id -> answer; without those that the person left for later.
    """
    groups: dict[Any, list[Any]] = {}
    for one in waiting:
        told = flat(one.value)
        alike = [str(told.get(name, "")) for name in _ALIKE] if _is_approval(one) else [one.id]
        groups.setdefault(tuple(alike), []).append(one)
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
        one.id: decided("approve", one.value)
        for one in waiting
        if _is_approval(one) and not (one.value.get("unchecked") or one.value.get("confirm"))
    }


def leave_inputs(waiting: Sequence[Any]) -> dict[str, Any]:
    """The answers if nobody can be asked: steps without values do not change, and questions are left open."""
    return {one.id: decided("reject", one.value) for one in waiting if _kind(one) in ("needs_input", "question")}


def described(waiting: Sequence[Any]) -> list[dict[str, Any]]:
    """The pending interrupts as plain values."""
    return [{"id": one.id, **(one.value if _kind(one) else {"type": "", "value": one.value})} for one in waiting]


def _kind(waiting: Any) -> str:
    value = waiting.value
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) and kind in _QUESTIONS else ""


def _is_approval(waiting: Any) -> bool:
    return _kind(waiting) == "tool_approval"


def _decisions(group: Sequence[Any]) -> dict[str, Any]:
    """The answers to several calls of one tool."""
    first, calls = flat(group[0].value), [flat(one.value)["args"] for one in group]
    steps = ", ".join(dict.fromkeys(str(one.value["step_id"]) for one in group))
    click.echo(f"\n{len(group)} calls of {shown_text(first['tool'])}{_calls(calls)}", err=True)
    click.echo(f"Steps: {shown_text(steps)}", err=True)
    _tell(first, "why", "problem")
    match _choice(_GROUP, first):
        case "a":
            return {one.id: decided("approve", one.value) for one in group}
        case "t":
            return {one.id: decided("approve", one.value, always=True) for one in group}
        case "e":
            return _one_by_one(group)
        case "n":
            why = _reason()
            return {one.id: decided("reject", one.value, message=why) for one in group}
    return {}


def _one_by_one(waiting: Sequence[Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for one in waiting:
        answer = _QUESTIONS[kind](flat(one.value)) if (kind := _kind(one)) else _of_a_tool(one.value)
        if answer is None:
            break
        answers[one.id] = answer
    return answers


def _decision(asked: Mapping[str, Any]) -> Any:
    _show(asked, "wants to call")
    match _choice(_APPROVAL, asked):
        case "y":
            return decided("approve", asked)
        case "t":
            return decided("approve", asked, always=True)
        case "n":
            return decided("reject", asked, message=_reason())
        case "e":
            return _edit(asked)
        case "r":
            said = _text("The answer for the worker")
            return decided("respond", asked, message=said) if said else _decision(asked)
    return None


def _verdict(asked: Mapping[str, Any]) -> Any:
    _show(asked, "has called")
    match _choice(_OUTCOME):
        case "d":
            said = _text("Its answer, if you know it (may stay empty)")
            return decided("respond", asked, message=said or TOOK_EFFECT)
        case "n":
            return decided("edit", asked)
        case "g":
            return decided("reject", asked)
    return None


def _values(asked: Mapping[str, Any]) -> Any:
    click.echo(err=True)
    _tell(asked, "description", "problem")
    values: dict[str, Any] = {}
    for name in asked["args"]:
        said, value = _asked_value(name, asked["schema"])
        if not said:
            return decided("reject", asked)
        values[name] = value
    return decided("edit", asked, args=values)


def _reply(asked: Mapping[str, Any]) -> Any:
    """The answer to a question about the request: a text, or the number of a choice."""
    click.echo(err=True)
    _tell(asked["args"], "question")
    choices = list(map(str, asked["args"]["choices"]))
    for number, choice in enumerate(choices, 1):
        click.echo(f"  {number}  {shown_text(choice)}", err=True)
    said = _text("Your answer (empty leaves the question open)")
    chosen = choices[int(said) - 1] if said.isdecimal() and 0 < int(said) <= len(choices) else said
    return decided("respond", asked, message=chosen) if chosen else decided("reject", asked)


def _of_a_tool(value: Any) -> Any:
    """The answer to an interrupt of a tool itself."""
    click.echo(f"\nA tool asks:\n{shown_value(value)}", err=True)
    return _text("Your answer (empty to be asked later)") or None


_QUESTIONS: Mapping[str, Callable[[Any], Any]] = {
    "tool_approval": _decision,
    "unknown_outcome": _verdict,
    "needs_input": _values,
    "question": _reply,
}
"""Who asks about the interrupts of each type."""


def _reason() -> str:
    return _text("Why (may stay empty)")


def _edit(asked: Mapping[str, Any]) -> Any:
    plain = json.dumps(asked["args"], ensure_ascii=False, indent=2, default=str)
    text: str | None = click.edit(plain, extension=".json")
    try:
        return decided("edit", asked, args=json.loads(text) if text else asked["args"])
    except ValueError as error:
        click.echo(f"invalid JSON: {error}", err=True)
        return _decision(asked)


def _show(asked: Mapping[str, Any], what: str) -> None:
    click.echo(f"\n{shown_text('Step {} {} {}'.format(asked['step_id'], what, asked['tool']))}", err=True)
    click.echo(shown_value(asked["args"]), err=True)
    _tell(asked, "why", "problem")


def _tell(asked: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if asked.get(name):
            click.echo(shown_text(asked[name]), err=True)


def _choice(words: Mapping[str, str], asked: Mapping[str, Any] | None = None) -> str:
    """The letter of a choice, of those that the question offers."""
    if asked is not None:
        unable = {letter for letter, decision in _OFFERED.items() if decision not in asked["decisions"]}
        unable |= {"e"} if "edit" not in asked["decisions"] and words is _APPROVAL else set()
        unable |= set() if asked.get("always") else {"t"}
        words = {letter: word for letter, word in words.items() if letter not in unable}
    shown_words = ", ".join(f"{letter}={word}" for letter, word in words.items())
    letters = {word: letter for letter, word in words.items()}
    chosen: str = click.prompt(shown_words, type=click.Choice([*words, *letters]), show_choices=False, err=True)
    return letters.get(chosen, chosen)


def _text(what: str, *, hidden: bool = False) -> str:
    return str(click.prompt(what, default="", show_default=False, hide_input=hidden, err=True))


def _asked_value(name: str, schema: Mapping[str, Any]) -> tuple[str, Any]:
    """What a person types for a parameter, and its value, as text or as JSON; asks again if it does not fit."""
    from callsheet.agents.approval.questions import wanted_schema, wrong_values
    from callsheet.agents.safety.secrets import is_secret

    one = wanted_schema(schema, [name])
    spec = one["properties"][name]
    hidden = isinstance(spec, Mapping) and is_secret(name, spec)
    while said := _typed(f"{shown_text(name)} (empty leaves the step as it is)", hidden=hidden):
        values: list[Any] = [said]
        with suppress(ValueError):
            values.append(json.loads(said))
        problems = [wrong_values(one, {name: value}) for value in values]
        if "" in problems:
            return said, values[problems.index("")]
        click.echo("the value does not fit" if hidden else shown_text(problems[-1]), err=True)
    return "", None


def _typed(what: str, *, hidden: bool) -> str:
    """The input of a person; empty at the end of input."""
    try:
        return _text(what, hidden=hidden)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo(err=True)
        return ""


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
    if not (new := [start for digest, start in starts.items() if digest not in known]):
        return
    click.echo(f"The catalog wants to {doing(new)}:\n" + "\n".join(f"  {start}" for start in new), err=True)
    if not click.confirm("Allow this now and in future?", err=True):
        raise TrustError("there is no consent, so nothing was started or read")
    agreements.add(new)


def ask_trust(loaded: Loaded, *, yes: bool) -> bool:
    """Asks once about each server that says which of its tools only read whether that is believed, and stores it.

    Returns:
        Whether another server is believed from now on.
    """
    servers = {} if yes or yes_from_environment() or not has_terminal() else believable(loaded)
    agreements, more = Agreements(), False
    known = agreements.known() if servers else frozenset()
    for agent, server in servers.items():
        if loaded.trusts(agent) or known & {believed(server), believed(server, yes=False)}:
            continue
        click.echo(f"\n{one_line(agent)}: this server marks tools as read-only.", err=True)
        answer = click.confirm("Trust it, and call these tools without asking?", err=True)
        agreements.add([believed(server, yes=answer)])
        more |= answer
    return more


def shown_value(value: Any) -> str:
    """The value as JSON, hidden characters written out; a long one with one line per key and item."""
    plain = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    lines = plain.split("\n") if len(plain) <= _LONGEST else [*_lines(value), _NOTE.format(len(plain))]
    return "\n".join(map(escaped, lines))


def shown_text(text: str) -> str:
    """A text with hidden characters written out, because a person agrees to it; a long one is cut, which is said."""
    kept = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters in all)"
    return "\n".join(map(escaped, kept.split("\n")))


def _calls(calls: Sequence[Mapping[str, Any]]) -> str:
    """The arguments of several calls of one tool, to follow its name: those that differ, and those that are the same.

    A few short values of one parameter are in one line, otherwise each call has its own. No call is left out.
    """
    plain = [{name: _json(value) for name, value in one.items()} for one in calls]
    same = {name: calls[0][name] for name, text in plain[0].items() if all(one.get(name) == text for one in plain)}
    differing = [{name: value for name, value in one.items() if name not in same} for one in calls]
    names = {name for one in differing for name in one}
    told = ":" + "".join(f"\n  {number}  {_call(one)}" for number, one in enumerate(differing, 1)) if names else ""
    if len(names) == 1 and all(differing):
        (name,) = names
        line = one_line(f", {_key(name)}: {', '.join(one[name] for one in plain)}")
        told = line if len(line) <= _WIDTH else told
    return f"{told}\nIn all of them: {shown_value(same)}" if same or not names else told


def _call(arguments: Mapping[str, Any]) -> str:
    text = ", ".join(f"{_key(name)}: {_json(value)}" for name, value in arguments.items()) or "(no other arguments)"
    lines = [text] if len(text) <= _LONGEST else [*_lines(arguments), _NOTE.format(len(text))]
    return "\n     ".join(map(one_line, lines))


def _lines(value: Any) -> Iterator[str]:
    """A line per key and item of a value; the middle of a very long plain list is left out, which is said."""
    waiting = [("", value)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, dict) and one:
            waiting += reversed([(f"{path}.{_key(key)}".lstrip("."), item) for key, item in one.items()])
        elif not isinstance(one, list) or not one:
            yield f"{path}: {_leaf(one)}"
        elif len(one) <= _MOST_ITEMS or any(isinstance(item, dict | list) for item in one):
            waiting += reversed([(f"{path}[{n}]", item) for n, item in enumerate(one)])
        else:
            end, again = _MOST_ITEMS - _LAST_ITEMS, len(one) - _LAST_ITEMS
            yield from (f"{path}[{n}]: {_leaf(one[n])}" for n in range(end))
            yield f"{path}[{end}]: {again - end:,} of {len(one):,} items of this list are not shown here"
            yield from (f"{path}[{n}]: {_leaf(one[n])}" for n in range(again, len(one)))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _leaf(value: Any) -> str:
    return _json(_short(value, _LONGEST_TEXT)) if isinstance(value, str) else _short(_json(value), _LONGEST_TEXT)


def _key(key: str) -> str:
    short = _short(key, _LONGEST_KEY)
    return short if short.isidentifier() else _json(short)


def _short(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end]} … {len(text) - most:,} characters … {text[-end:]}"
