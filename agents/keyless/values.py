"""The rules by which one slot gets its value, the surest first."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from callsheet.agents.keyless.closed import fill_closed, fill_flag
from callsheet.agents.keyless.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.labels import find_labelled
from callsheet.agents.keyless.literals import find_expression, find_search, find_sql
from callsheet.agents.keyless.places import find_place
from callsheet.agents.keyless.quantities import is_unit
from callsheet.agents.keyless.readings import composed, find_field, read
from callsheet.agents.keyless.slots import Slot, slots_of
from callsheet.agents.keyless.zones import is_zone
from callsheet.agents.plan import StepResult

CONTENT = ("content", "contents", "text", "body", "data", "message", "note", "insight", "observation", "summary")
"""Names of parameters that take what was found."""

_PATH = ("path", "file", "filename", "filepath", "directory", "dir", "folder", "filenames")
_MAYBE_PATH = ("source", "destination", "dest", "src", "dst", "input", "output")
_DIRECTORY = ("directory", "dir", "folder", "repo", "repository", "root", "workspace")
_ADDRESS = ("url", "uri", "link", "href", "website", "endpoint", "webpage")
_MAIL = ("email", "mail", "recipient", "to", "cc", "bcc", "sender", "attendee", "from")
_IDENTIFIED = (
    "id",
    "sku",
    "code",
    "key",
    "ref",
    "reference",
    "number",
    "order",
    "ticket",
    "isbn",
    "hash",
    "revision",
    "sha",
    "commit",
    "issue",
)
_FORMULA = ("expression", "expr", "formula", "equation")
_SEARCHED = ("query", "q", "keyword", "search", "term", "topic", "question", "phrase")
_REFERS = re.compile(
    r"\b(?:it|its|that|this|them|those|these|both|result|results|answer|answers|all|each|value|values|output|summary|translation"
    r"|report|average|total|sum|time|text|list|number|content|contents|lines)\b",
    re.IGNORECASE,
)
_NAMING = re.compile(
    r"\b(?:branch|tag)\s+(?:(?:named|called)\s+)?$|\b(?:branch|tag|remote)\b[^.]*\b(?:named|called)\s+$"
)
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules look at.

    Attributes:
        pool: The step's evidence.
        inputs: Finished results that it builds on.
        slots: All slots of the tool, so that a rule can see its rivals.
        filled: What the object has so far; a rule may fill a slot's rivals along with it.
        depth: How deep in nested objects.
    """

    pool: Pool
    inputs: tuple[StepResult, ...]
    slots: Sequence[Slot]
    filled: dict[str, Any] = field(default_factory=dict)
    depth: int = 0

    @property
    def open(self) -> list[Slot]:
        """The required slots that have no value yet."""
        return [slot for slot in self.slots if slot.required and slot.name not in self.filled]

    @property
    def numbers(self) -> list[float | int]:
        """The numbers that earlier results come to."""
        return [r.number for r in (read(done.result) for done in self.inputs) if r.number is not None]

    def apply(self) -> dict[str, Any]:
        """What the rules fill, the surest rule first for every slot."""
        for rule in RULES:
            for slot in self.slots:
                if slot.name in self.filled or is_zone(slot) or is_unit(slot):
                    continue
                value = rule(slot, self)
                if value is not None:
                    self.filled[slot.name] = value
        return self.filled

    @property
    def refers(self) -> bool:
        """Whether the text points at the results it builds on."""
        return bool(self.inputs) and bool(_REFERS.search(self.pool.bare) or not self.pool.free(Kind.QUOTED))


Rule = Callable[[Slot, Context], Any]


def _closed(slot: Slot, context: Context) -> Any:
    return fill_closed(slot, context.pool) if slot.vocabulary else None


def _flag(slot: Slot, context: Context) -> bool | None:
    return fill_flag(slot, context.pool) if slot.types == {"boolean"} else None


def _literal(slot: Slot, context: Context) -> Any:
    for item in context.pool.free(Kind.JSON):
        if (isinstance(item.value, list) and "array" in slot.types) or (
            isinstance(item.value, dict) and "object" in slot.types
        ):
            return context.pool.take(item)
    return None


def _formatted(slot: Slot, context: Context) -> Any:
    if not slot.textual or slot.vocabulary:
        return None
    for fits, finder in _FORMATS:
        if fits(slot):
            return finder(slot, context)
    return None


def _labelled(slot: Slot, context: Context) -> Any:
    if slot.vocabulary or not (slot.textual or slot.numeric) or _typed(slot):
        return None
    if slot.textual and not slot.required and context.depth == 0 and slot.words[:1] == ("from",):
        return None
    return find_labelled(slot, context.pool)


def _identified(slot: Slot, context: Context) -> Any:
    if not slot.required or not slot.textual or not slot.says(*_IDENTIFIED):
        return None
    kinds = [Kind.PHONE] if "phone" in slot.description.lower() else [Kind.IDENTIFIER]
    return _first(context.pool, *kinds)


def _phone(slot: Slot, context: Context) -> Any:
    asked = slot.says("phone", "mobile", "tel") or "phone" in slot.description.lower()
    return _first(context.pool, Kind.PHONE) if slot.textual and asked else None


def _place(slot: Slot, context: Context) -> Any:
    return find_place(slot, context.pool) if slot.textual and not slot.vocabulary else None


def _field(slot: Slot, context: Context) -> Any:
    """A field of an earlier result that bears the parameter's name."""
    if not slot.required or slot.vocabulary:
        return None
    for done in reversed(context.inputs):
        fields = read(done.result).fields
        value = find_field(fields, slot.name) if fields else None
        if isinstance(value, bool | int | float | str):
            return value
    return None


def _array(slot: Slot, context: Context) -> Any:
    if "array" not in slot.types:
        return None
    wanted = slot.items.get("type")
    if wanted in {"number", "integer"}:
        return _numbers(context)
    if wanted == "string":
        return _strings(slot, context)
    if wanted == "object" or "properties" in slot.items:
        one = _nested(slot.items, context)
        return [one] if one else None
    return None


def _object(slot: Slot, context: Context) -> Any:
    return _nested(slot.spec, context) if "object" in slot.types and slot.spec.get("properties") else None


def _composed(slot: Slot, context: Context) -> Any:
    if not (slot.textual and slot.required and slot.says(*CONTENT) and context.refers):
        return None
    if slot.says("find", "search", "target", "old"):
        return None
    return composed(context.inputs)


def _number(slot: Slot, context: Context) -> Any:
    """The numbers left, in order, when there are as many as slots; else the one of an earlier result."""
    rivals = [s for s in context.open if s.numeric]
    if slot not in rivals:
        return None
    left, given = context.pool.free(Kind.NUMBER), context.numbers
    if len(given) + len(left) == len(rivals):
        values = [*given, *(context.pool.take(item) for item in left)]
        context.filled.update(zip((s.name for s in rivals), values, strict=True))
        return context.filled[slot.name]
    if len(rivals) == 1 and len(left) == 1:
        return context.pool.take(left[0])
    return given[0] if len(rivals) == 1 and len(given) == 1 and not left else None


def _quoted(slot: Slot, context: Context) -> Any:
    """The quotations left, in order, when there is one for each required string without a type."""
    rivals = _loose(context)
    texts = context.pool.free(Kind.QUOTED)
    return context.pool.take(texts[0]) if slot in rivals and len(texts) >= len(rivals) else None


def _raw(slot: Slot, context: Context) -> Any:
    """What "translate it" speaks of: the one result that a lone text parameter can take."""
    if _loose(context) != [slot] or not context.refers or slot.says("id", "name"):
        return None
    return read(context.inputs[-1].result).text or None


def _loose(context: Context) -> list[Slot]:
    return [s for s in context.open if s.textual and not s.vocabulary and not _typed(s)]


def _typed(slot: Slot) -> bool:
    return any(fits(slot) for fits, _ in _FORMATS)


def _first(pool: Pool, *kinds: Kind) -> Any:
    found = pool.free(*kinds)
    return pool.take(found[0]) if found else None


def _is_path(slot: Slot) -> bool:
    if slot.says(*_PATH):
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
    return _path_of_inputs(slot, context) if slot.required and context.refers else None


def _best_path(slot: Slot, found: Sequence[Evidence]) -> Evidence | None:
    directory = slot.says(*_DIRECTORY)
    fitting = [i for i in found if not (directory and _EXTENSION.search(str(i.value)))]
    said = [i for i in fitting if any(str(i.value).lower().endswith(f".{word}") for word in slot.words)]
    if slot.required:
        return (said or fitting or [None])[0]  # type: ignore[list-item]
    return said[0] if said else fitting[0] if fitting and directory else None


def _path_of_inputs(slot: Slot, context: Context) -> Any:
    for done in reversed(context.inputs):
        for text in (done.result if len(done.result) < 500 else "", done.text):
            if chosen := _best_path(slot, Pool.of(text).free(Kind.PATH)):
                return chosen.value
    return None


def _address(_slot: Slot, context: Context) -> Any:
    return _first(context.pool, Kind.URL)


def _mail(_slot: Slot, context: Context) -> Any:
    return _first(context.pool, Kind.EMAIL)


def _stamp(_slot: Slot, context: Context) -> Any:
    whole = _first(context.pool, Kind.DATETIME)
    if whole:
        return str(whole).replace(" ", "T")
    day, clock = context.pool.free(Kind.DATE), context.pool.free(Kind.CLOCK)
    if not day or not clock:
        return None
    return f"{context.pool.take(day[0])}T{context.pool.take(clock[0])}:00"


def _expression(_slot: Slot, context: Context) -> Any:
    return find_expression(context.pool, context.numbers)


def _is_sql(slot: Slot) -> bool:
    about = f"{slot.description} {slot.about}"
    return slot.says("sql", "statement") or (
        slot.says("query") and bool(re.search(r"\bSQL|\bSELECT\b|database", about))
    )


def _is_mail(slot: Slot) -> bool:
    named = slot.says("email", "recipient", "cc", "bcc") or slot.spec.get("format") == "email"
    return named or (slot.says(*_MAIL) and "mail" in slot.description.lower())


def _is_clock(slot: Slot) -> bool:
    return (
        slot.spec.get("format") == "time"
        or "HH:MM" in slot.description
        or slot.name in {"time", "at", "start_time", "end_time"}
    )


_FORMATS: tuple[tuple[Callable[[Slot], bool], Rule], ...] = (
    (_is_sql, lambda _slot, context: find_sql(context.pool)),
    (lambda slot: slot.says(*_FORMULA), _expression),
    (lambda slot: slot.says(*_ADDRESS) or slot.spec.get("format") in {"uri", "url"}, _address),
    (_is_mail, _mail),
    (lambda slot: slot.spec.get("format") == "date-time", _stamp),
    (lambda slot: slot.spec.get("format") == "date" or slot.says("date"), lambda _s, c: _first(c.pool, Kind.DATE)),
    (_is_clock, lambda _s, c: _first(c.pool, Kind.CLOCK)),
    (_is_path, _path),
    (lambda slot: slot.required and slot.name in _SEARCHED, lambda _s, c: find_search(c.pool)),
)


def _numbers(context: Context) -> list[Any] | None:
    left = [
        i
        for i in context.pool.free(Kind.NUMBER)
        if not re.match(r"\s*(?:decimals?|digits|places)\b", context.pool.text[i.end :])
    ]
    found = [*context.numbers, *(context.pool.take(item) for item in left)]
    return found or None


def _strings(slot: Slot, context: Context) -> list[Any] | None:
    pool = context.pool
    labelled = Slot(slot.name, slot.words, frozenset({"string"}), slot.items, slot.required)
    if _is_path(labelled):
        found = [pool.take(item) for item in pool.free(Kind.PATH)]
        one = None if found else _path_of_inputs(labelled, context) if context.refers else None
        return found or ([one] if one else None)
    if _is_mail(labelled):
        return [pool.take(item) for item in pool.free(Kind.EMAIL)] or None
    if slot.says(*CONTENT) and context.refers:
        return [composed(context.inputs)]
    first = find_labelled(labelled, pool)
    if not slot.required:
        return [first] if first is not None else None
    kinds = (Kind.IDENTIFIER,) if slot.says("id") else (Kind.QUOTED,)
    rest = [pool.take(item) for item in pool.free(*kinds)] if context.depth == 0 else []
    return [*([first] if first is not None else []), *rest] or None


def _nested(spec: Any, context: Context) -> dict[str, Any] | None:
    """An object, when each of its required properties has evidence; what it used is given back when not."""
    if context.depth > 3:
        return None
    slots = slots_of(spec)
    before = list(context.pool.used)
    found = Context(context.pool, context.inputs, slots, depth=context.depth + 1).apply()
    needed = [slot.name for slot in slots if slot.required]
    if not needed or any(name not in found for name in needed):
        context.pool.used[:] = before
        return None
    return found


RULES: tuple[Rule, ...] = (
    _literal, _phone, _formatted, _closed, _flag, _labelled, _identified, _place, _field, _array, _object,
    _composed, _number, _quoted, _raw,
)  # fmt: skip
"""In order: what is unmistakable first, what only remains last."""
