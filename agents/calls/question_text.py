"""Formats the arguments of a call, or the definition of a tool, for a question to a person.

All surfaces show the same text.

The text shows what will be sent: numbers are exact, invisible characters are written as codes, and where a long text is
shortened, it says so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from callsheet.agents.calls.refusal import Refusal
from callsheet.graphs.text.hidden import escaped, escaped_line, spelled_out
from callsheet.graphs.text.unicode import DEEPEST, encodable

_LONGEST = 4_000
_LONGEST_TEXT = 600
_MOST_ITEMS = 500
_LAST_ITEMS = 100
_ATTENTION = "(ATTENTION: {:,} characters in all: each text is shortened, every key is shown)"
_READ = frozenset({"name", "title", "description", "inputSchema", "annotations"})
"""The parts of a definition that a model reads, or a rule about approval."""
_OF_SCHEMA = frozenset({"type", "properties", "required", "$schema"})
_LEAST = -(2**63)
_GREATEST = 2**64 - 1
_DEEP = re.compile(r"(?m)^ {40,}")


def whole_value(value: Any, *, indent: int | None = 2) -> str:
    """Returns the value as JSON that can be parsed back, with invisible characters written as codes."""
    return spelled_out(json.dumps(value, ensure_ascii=False, indent=indent, default=str))


def shown_value(value: Any, *, indent: int | None = 2) -> str:
    """Returns the value as ``whole_value`` does, but shortens it if it is long.

    Every key stays, and the beginning and the end of each text.
    """
    whole = whole_value(value, indent=indent)
    if len(whole) <= _LONGEST:
        return whole
    # Deep nesting would be nearly all blanks.
    short = _DEEP.sub(" " * 40, whole_value(_shortened(value), indent=indent))
    return f"{short} {_ATTENTION.format(len(whole))}"


def shown_definition(definition: Mapping[str, object]) -> str:
    """Returns the parts of the definition of a tool that a model or a rule about approval reads, as lines of text.

    Other parts are only named. A long definition is shortened as by ``shown_value``. A text of the definition cannot
    imitate a line of ours: all lines of a longer one are indented, and hidden characters are written as codes.
    """
    size = len(whole_value(definition))
    told: Mapping[str, object] = definition if size <= _LONGEST else _shortened(dict(definition))
    texts = [(name, told[name]) for name in ("name", "title", "description") if told.get(name)]
    lines = [f"{name.capitalize()}:{_indented(str(text))}" for name, text in texts]
    if "inputSchema" in told:
        lines += _argument_lines(told["inputSchema"])
    if told.get("annotations"):
        lines.append(f"Hints of its server: {whole_value(told['annotations'], indent=None)}")
    rest = [escaped_line(str(name)) for name in told if name not in _READ]
    if rest:
        lines.append(f"Not shown, because no model reads it: {', '.join(rest)}")
    if told is not definition:
        lines.append(_ATTENTION.format(size))
    return "\n".join(lines)


def _indented(text: str) -> str:
    lines = [escaped(line) for line in text.strip().splitlines()]
    return f" {lines[0]}" if len(lines) == 1 else "".join(f"\n  {line}" for line in lines)


def _argument_lines(schema: object) -> list[str]:
    """Returns a line for each argument of an input schema, and one for what else the schema holds."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties") or {}, Mapping):
        return [f"Arguments: {whole_value(schema, indent=None)}"]
    arguments = schema.get("properties") or {}
    required = schema.get("required")
    needed: Sequence[object] = required if isinstance(required, list) else ()
    lines = ["Arguments:"] if arguments else ["Arguments: none"]
    lines += [_argument_line(name, spec, required=name in needed) for name, spec in arguments.items()]
    # Whether further arguments are allowed is no text that a model follows.
    more = {key: part for key, part in schema.items() if key not in _OF_SCHEMA and not isinstance(part, bool)}
    if more:
        lines.append(f"Also in the schema: {whole_value(more, indent=None)}")
    return lines


def _argument_line(name: object, spec: object, *, required: bool) -> str:
    more = dict(spec) if isinstance(spec, Mapping) else {}
    kinds = more.pop("type", "any")
    kind = " or ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)
    about = " ".join(str(more.pop("description", "")).split())
    line = f"  {name} ({kind}{', required' if required else ''})"
    line += f": {about}" if about else ""
    line += f" {whole_value(more, indent=None)}" if more else ""
    return escaped_line(line)


def inexact(value: Any, *, deepest: int = DEEPEST) -> Refusal | None:
    """Returns why a value cannot be stored and sent unchanged; None if it can.

    A checkpoint holds no integer of more than 64 bits, JSON has no infinite number, UTF-8 has no lone surrogate, and a
    call may be nested at most ``deepest`` levels.
    """
    if deepest < 0:
        return Refusal(f"a value that is nested more than {DEEPEST} levels deep cannot be sent")
    match value:
        case bool():
            return None
        case int() if not _LEAST <= value <= _GREATEST:
            return Refusal("an integer of more than 64 bits can be given only as text")
        case float() if not math.isfinite(value):
            return Refusal("a number that JSON does not support cannot be sent")
        case str() if encodable(value) != value:
            return Refusal("half of a character (a lone surrogate) cannot be sent")
        case Mapping():
            parts: Iterable[Any] = (part for pair in value.items() for part in pair)
        case list() | tuple():
            parts = value
        case _:
            return None
    return next(filter(None, (inexact(part, deepest=deepest - 1) for part in parts)), None)


def shown_text(text: str) -> str:
    """Returns a text with hidden characters written as codes; a long text is shortened, and the result says so."""
    kept = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters in all)"
    return "\n".join(map(escaped, kept.split("\n")))


def _shortened(value: Any) -> Any:
    """Long texts and very long plain lists without their middles, which is said in their place."""
    match value:
        case str() if len(value) > _LONGEST_TEXT:
            end = _LONGEST_TEXT // 4
            return f"{value[: _LONGEST_TEXT - end]} … {len(value) - _LONGEST_TEXT:,} characters … {value[-end:]}"
        case dict():
            return {key: _shortened(item) for key, item in value.items()}
        case list() if len(value) > _MOST_ITEMS and not any(isinstance(item, dict | list) for item in value):
            note = f"{len(value) - _MOST_ITEMS:,} of {len(value):,} items of this list are not shown here"
            kept = *value[: _MOST_ITEMS - _LAST_ITEMS], note, *value[-_LAST_ITEMS:]
            return [_shortened(item) for item in kept]
        case list():
            return [_shortened(item) for item in value]
    return value
