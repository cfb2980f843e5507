"""Parameters whose value has a form of its own: paths, addresses, dates, SQL, formulas."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.entities.literals import find_expression, find_search, find_sql
from callsheet.agents.keyless.slots.slot import Slot, words_of
from callsheet.agents.keyless.slots.slot_context import Context, Rule

_PATH = ("path", "file", "filename", "filepath", "directory", "dir", "folder", "filenames")
_MAYBE_PATH = ("source", "destination", "dest", "src", "dst", "input", "output")
_DIRECTORY = ("directory", "dir", "folder", "repo", "repository", "root", "workspace")
_ADDRESS = ("url", "uri", "link", "href", "website", "endpoint", "webpage")
_MAIL = ("email", "mail", "recipient", "to", "cc", "bcc", "sender", "attendee", "from")
_FORMULA = ("expression", "expr", "formula", "equation")
_SEARCHED = ("query", "q", "keyword", "search", "term", "topic", "question", "phrase")
_NAMING = re.compile(
    r"\b(?:branch|tag)\s+(?:(?:named|called)\s+)?$|\b(?:branch|tag|remote)\b[^.]*\b(?:named|called)\s+$"
)
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")


def typed(slot: Slot) -> bool:
    """Whether a slot takes a value of a known form."""
    return slot.textual and any(fits(slot) for fits, _ in FORMATS)


def first(pool: Pool, *kinds: Kind) -> Any:
    """The first unused piece of evidence of these kinds, or None."""
    found = pool.free(*kinds)
    return pool.take(found[0]) if found else None


def is_path(slot: Slot) -> bool:
    """Whether a slot takes a path or a file name."""
    named = slot.head.removesuffix("s") in _PATH or slot.says("path", "filename", "filepath", "directory")
    if named or (slot.head == "name" and slot.says("file")):
        return True
    about = slot.description.lower()
    return slot.says(*_MAYBE_PATH) and len(slot.words) == 1 and (not about or "path" in about or "file" in about)


def _path(slot: Slot, context: Context) -> Any:
    found = [i for i in context.pool.free(Kind.PATH) if not _NAMING.search(context.pool.text[: i.start])]
    chosen = _best_path(slot, found)
    if chosen:
        return context.pool.take(chosen)
    quoted = [
        q
        for q in context.pool.free(Kind.QUOTED)
        if re.search(r"[/\\]|\.\w{1,5}$", str(q.value)) and " " not in str(q.value)
    ]
    if quoted:
        return context.pool.take(quoted[0])
    return path_of_inputs(slot, context) if slot.required and context.refers else None


def _best_path(slot: Slot, found: Sequence[Evidence]) -> Evidence | None:
    tool = words_of(slot.about.partition("\n")[0])
    directory = slot.says(*_DIRECTORY) or ("file" not in slot.words and bool({"directory", "folder"} & set(tool)))
    fitting = [i for i in found if not (directory and _EXTENSION.search(str(i.value)))]
    said = [i for i in fitting if any(str(i.value).lower().endswith(f".{word}") for word in slot.words)]
    if slot.required:
        return next(iter(said or fitting), None)
    return said[0] if said else fitting[0] if fitting and directory else None


def path_of_inputs(slot: Slot, context: Context) -> Any:
    """The path that "it" stands for: the only one of an earlier result, or of what the earlier step said."""
    for done in reversed(context.inputs):
        for text in (done.result if len(done.result) < 500 else "", done.text):
            found = Pool.of(text).free(Kind.PATH)
            if (chosen := _best_path(slot, found)) and len({item.value for item in found}) == 1:
                return chosen.value
    return None


def _address(slot: Slot, context: Context) -> Any:
    if (found := first(context.pool, Kind.URL)) or "file:" not in f"{slot.description} {slot.about}":
        return found
    whole = [i for i in context.pool.free(Kind.PATH) if str(i.value).startswith("/")]
    return f"file://{context.pool.take(whole[0])}" if whole else None


def _mail(_slot: Slot, context: Context) -> Any:
    return first(context.pool, Kind.EMAIL)


def _stamp(_slot: Slot, context: Context) -> Any:
    whole = first(context.pool, Kind.DATETIME)
    if whole:
        return str(whole).replace(" ", "T")
    day, clock = context.pool.free(Kind.DATE), context.pool.free(Kind.CLOCK)
    if not day or not clock:
        return None
    return f"{context.pool.take(day[0])}T{context.pool.take(clock[0])}:00"


def _expression(_slot: Slot, context: Context) -> Any:
    return find_expression(context.pool, context.numbers)


def is_sql(slot: Slot) -> bool:
    """Whether a slot takes SQL."""
    about = f"{slot.description} {slot.about}"
    return slot.says("sql", "statement") or (
        slot.says("query") and bool(re.search(r"\bSQL|\bSELECT\b|database", about))
    )


def is_mail(slot: Slot) -> bool:
    """Whether a slot takes an e-mail address."""
    named = slot.says("email", "recipient", "cc", "bcc") or slot.spec.get("format") == "email"
    return named or (slot.says(*_MAIL) and "mail" in f"{slot.description} {slot.about}".lower())


def _is_clock(slot: Slot) -> bool:
    return (
        slot.spec.get("format") == "time"
        or "HH:MM" in slot.description
        or slot.name in {"time", "at", "start_time", "end_time"}
    )


FORMATS: tuple[tuple[Callable[[Slot], bool], Rule], ...] = (
    (is_sql, lambda _slot, context: find_sql(context.pool)),
    (lambda slot: slot.says(*_FORMULA), _expression),
    (lambda slot: slot.says(*_ADDRESS) or slot.spec.get("format") in {"uri", "url"}, _address),
    (is_mail, _mail),
    (lambda slot: slot.spec.get("format") == "date-time", _stamp),
    (lambda slot: slot.spec.get("format") == "date" or slot.says("date"), lambda _s, c: first(c.pool, Kind.DATE)),
    (_is_clock, lambda _s, c: first(c.pool, Kind.CLOCK)),
    (is_path, _path),
    (lambda slot: slot.required and slot.name in _SEARCHED, lambda _s, c: find_search(c.pool)),
)
"""Which slots have a form, and how its value is found; the first that fits counts."""
