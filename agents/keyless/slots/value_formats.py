"""Parameters whose values have a form: paths, addresses, dates, SQL, formulas."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from callsheet.agents.keyless.entities.dates import DATES
from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.slots.slot import Slot, words_of
from callsheet.agents.planning.plan import StepResult

_PATH = ("path", "file", "filename", "filepath", "directory", "dir", "folder")
_MAYBE_PATH = ("source", "destination", "dest", "src", "dst", "input", "output")
_FILES = re.compile(r"path|file|folder|director|document")
_DIRECTORY = ("directory", "dir", "folder", "repo", "repository", "root", "workspace")
_MAIL = ("email", "mail", "recipient", "to", "cc", "bcc", "sender", "attendee")
_SEARCHED = ("query", "q", "keyword", "search", "term", "topic", "question", "phrase")
_PATH_ALONE = re.compile(
    r"\S*(?:[/\\]\S*|\.\w{1,5})|(?:(?:~|\.{1,2})?/|[A-Za-z]:\\)[^\n]{1,250}|[^\n]{1,250}\.[A-Za-z]\w{0,4}"
)
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")
_FUNCTION = r"(?:sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|log10|log2|log|ln|exp|sqrt|abs|factorial|floor|ceil|round)"
_SPELLED = {
    "% of": "/100*", "percent of": "/100*", "plus": " + ", "minus": " - ", "times": " * ", "multiplied by": " * ",
    "divided by": " / ", "to the power of": "**", "squared": "**2", "cubed": "**3",
}  # fmt: skip
"""Operators in words."""
_OPERAND = r"(-?\d[\d,]*(?:\.\d+)?)"
_ORDERED = (
    (re.compile(rf"\badd\s+{_OPERAND}\s+(?:and|to)\s+{_OPERAND}(?![\w.,]*\d)", re.IGNORECASE), r"\1 + \2"),
    (re.compile(rf"\bsubtract\s+{_OPERAND}\s+from\s+{_OPERAND}(?![\w.,]*\d)", re.IGNORECASE), r"\2 - \1"),
    (re.compile(rf"\bmultiply\s+{_OPERAND}\s+(?:by|and|with)\s+{_OPERAND}(?![\w.,]*\d)", re.IGNORECASE), r"\1 * \2"),
    (re.compile(rf"\bdivide\s+{_OPERAND}\s+by\s+{_OPERAND}(?![\w.,]*\d)", re.IGNORECASE), r"\1 / \2"),
)
"""Orders to compute with two numbers, and their formulas."""
_WORDED = re.compile(rf"\s*(?<![A-Za-z])({'|'.join(_SPELLED)})\b\s*", re.IGNORECASE)
_SIGN = r"\*\*|[-+*/^%=×÷−·]"
_TOKEN = (
    rf"(?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\d)|\b{_FUNCTION}\b(?=\s*\()|\bpi\b|(?<![A-Za-z'’])[A-Za-z](?![A-Za-z])"
    rf"|{_WORDED.pattern}|{_SIGN}|[(),!])"
)
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ASCII = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-"})
_RUN = re.compile(rf"{_TOKEN}(?:\s*{_TOKEN})*", re.IGNORECASE)
_OPERATED = re.compile(rf"[\w)!]\s*(?:{_SIGN})\s*[-+]?\s*[\w(]|{_FUNCTION}\s*\(|\d!")
_STATEMENT = re.compile(
    r"\s*(?:select|insert|update|delete|create|drop|alter|with|pragma|show|describe|explain)\b", re.I
)
_PHRASE = re.compile(r"\b(?:search|look|google|find|query)\b[^.;:]*?\b(?:for|about|up)\s+([^.;?!]+)", re.IGNORECASE)
_PLACE = re.compile(r"\b(?:in|for|at|near|of)\s+([A-ZÀ-Þ][\w'’-]*(?:\s[A-ZÀ-Þ][\w'’-]*)*)")


def find_path(
    slot: Slot, pool: Pool, inputs: Sequence[StepResult] = (), paths: Sequence[Evidence] | None = None
) -> Any:
    """The path in a text, of those given, or the only path of an earlier step if there is none."""
    if chosen := _best_path(slot, paths_in(pool) if paths is None else paths):
        return pool.take(chosen)
    for text in (text for done in reversed(inputs) for text in (done.result[:500], done.text)):
        found = Pool.of(text).free(Kind.PATH)
        if slot.required and (chosen := _best_path(slot, found)) and len({item.value for item in found}) == 1:
            pool.uses_results = True
            return chosen.value
    return None


def paths_in(pool: Pool) -> list[Evidence]:
    """The unused paths of a text, those in quotation marks last."""
    quoted = (item for item in pool.free(Kind.QUOTED) if _PATH_ALONE.fullmatch(str(item.value)))
    return [*pool.free(Kind.PATH), *quoted]


def _best_path(slot: Slot, found: Sequence[Evidence]) -> Evidence | None:
    tool = words_of(slot.about.partition("\n")[0])
    directory = slot.says(*_DIRECTORY) or ("file" not in slot.words and bool({"directory", "folder"} & set(tool)))
    fitting = [i for i in found if not (directory and _EXTENSION.search(str(i.value)))]
    return fitting[0] if fitting and (slot.required or directory) else None


def _expression(slot: Slot, pool: Pool) -> str | None:
    """The formula in a text, in signs or in words."""
    for quoted in pool.free(Kind.QUOTED):
        if _OPERATED.search(str(quoted.value)):
            return str(pool.take(quoted))
    text = pool.rest
    for item in pool.free(Kind.DATE, Kind.CLOCK, Kind.PHONE, Kind.IDENTIFIER):
        text = text[: item.start] + "¤" * (item.end - item.start) + text[item.end :]
    runs = [(m, m.expand(formula)) for order, formula in _ORDERED for m in order.finditer(text)]
    runs += [(m, _WORDED.sub(lambda word: _SPELLED[word[1].lower()], m.group())) for m in _RUN.finditer(text)]
    runs = [(match, formula) for match, formula in runs if _OPERATED.search(formula)]
    if not runs:
        return None
    match, formula = max(runs, key=lambda run: len(run[1]))
    pool.used.append(match.span())
    formula = re.sub(r"^(?:[aAI]\s+)+|[\s,=(]+$|^[\s,)*/=^%]+|\s+[aAI]$", "", formula.strip())
    formula = formula.translate(_ASCII)
    if "^" not in f"{slot.description} {slot.about}":
        formula = formula.replace("^", "**")
    if not re.search(rf"{_FUNCTION}\s*\(", formula, re.IGNORECASE):
        formula = _GROUPED.sub("", formula)
    surplus = formula.count(")") - formula.count("(")
    return formula[:-surplus].strip() if surplus > 0 and formula.endswith(")" * surplus) else formula


def _sql(_slot: Slot, pool: Pool) -> str | None:
    """The SQL in a text, quoted or not."""
    for item in pool.free(Kind.SQL, Kind.QUOTED):
        if item.kind is Kind.SQL or _STATEMENT.match(str(item.value)):
            return str(pool.take(item)).strip().rstrip(";").strip() or None
    return None


def _searched(_slot: Slot, pool: Pool) -> str | None:
    """The phrase to search for: a quotation, or the words after "for"."""
    if quoted := pool.free(Kind.QUOTED):
        return str(pool.first(Kind.QUOTED)) if len(quoted) == 1 else None
    match = _PHRASE.search(pool.text)
    if match is None or re.fullmatch(r"(?:it|that|this|them|the\s+\w+)", match[1].strip(), re.IGNORECASE):
        return None
    pool.used.append(match.span(1))
    return match[1].strip(" ,")


def _place(_slot: Slot, pool: Pool) -> str | None:
    """A capitalised name after "in" or a similar word."""
    match = _PLACE.search(pool.rest)
    pool.used += [match.span(1)] if match else []
    return match[1] if match else None


def _first(kind: Kind) -> Callable[[Slot, Pool], Any]:
    return lambda _slot, pool: pool.first(kind)


def is_path(slot: Slot) -> bool:
    """Whether a slot takes a path or a file name."""
    about = slot.description.lower() or slot.about.lower()
    maybe = slot.says(*_MAYBE_PATH) and len(slot.words) == 1 and (not about.strip() or bool(_FILES.search(about)))
    named = slot.head.removesuffix("s") in _PATH or slot.says("path", "filename", "filepath", "directory")
    return named or maybe or (slot.head == "name" and slot.says("file"))


def is_path_list(slot: Slot) -> bool:
    """Whether a slot takes several paths."""
    return "array" in slot.types and is_path(slot)


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


FORMATS: tuple[tuple[Callable[[Slot], bool], Callable[[Slot, Pool], Any]], ...] = (
    (is_sql, _sql),
    (lambda slot: slot.says("expression", "expr", "formula", "equation"), _expression),
    (
        lambda slot: slot.says("url", "uri", "link", "website") or slot.spec.get("format") in {"uri", "url"},
        _first(Kind.URL),
    ),
    (is_mail, _first(Kind.EMAIL)),
    *DATES,
    (lambda slot: "phone" in f"{slot.name} {slot.description}".lower(), _first(Kind.PHONE)),
    (is_path, find_path),
    (lambda slot: slot.says("city", "location", "place"), _place),
    (lambda slot: slot.required and slot.name in _SEARCHED, _searched),
)
"""Which slots have a form, and how to find the value; the first match counts."""


def is_formatted(slot: Slot) -> bool:
    """Whether a slot takes a value with a known form."""
    return slot.textual and any(fits(slot) for fits, _ in FORMATS)
