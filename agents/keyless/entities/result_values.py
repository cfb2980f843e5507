"""What a finished step found out: one readable line, a number, a unit, a named field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from callsheet.agents.planning.plan import StepResult

SALIENT = (
    "result", "converted_value", "converted", "answer", "value", "output", "target", "mean", "average", "total", "sum",
    "count", "datetime", "time", "text", "content", "message", "summary", "price", "amount", "data", "id", "name",
)  # fmt: skip
"""Fields that hold what a caller wants to know, the likeliest first."""

_ORIGIN = re.compile(r"(?:^|_)(?:original|from|input|source)(?:_|$)")
_NUMBER = re.compile(r"(?<![\w.:/-])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w:/-])")
_LONG = 400


@dataclass(frozen=True, slots=True)
class Reading:
    """A result as later steps and people can use it.

    Attributes:
        text: The salient part in words.
        number: The number it comes to, if one is plain.
        unit: The unit named beside it, if any.
        fields: The fields of a JSON result.
    """

    text: str
    number: float | int | None = None
    unit: str = ""
    fields: Mapping[str, Any] | None = None


def read(result: str) -> Reading:
    """What a tool's output comes to.

    Args:
        result: Plain text or JSON.
    """
    try:
        data = json.loads(result)
    except ValueError:
        return Reading(result.strip(), _last_number(result), result)
    if isinstance(data, bool) or data is None or isinstance(data, str):
        return Reading(str(data), _last_number(str(data)), str(data))
    if isinstance(data, int | float):
        return Reading(str(data), data)
    if isinstance(data, Mapping):
        key, found = _salient(data)
        value: Any = _text_of_blocks(found) or found
        unit = _unit(data)
        said = _in_words(value)
        number = value if _is_number(value) else _last_number(said) if isinstance(value, str) else None
        if number is None and key and isinstance(value, Mapping):
            number = read(json.dumps(value)).number
        return Reading(f"{said} {unit}".strip() if key and _is_number(value) else said, number, unit, data)
    blocks = _text_of_blocks(data)
    return read(blocks) if blocks else Reading(_in_words(data), None)


def _text_of_blocks(value: Any) -> str:
    """The text of MCP's content blocks, where a tool wrote them as JSON; empty for anything else."""
    blocks = value if isinstance(value, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, Mapping)]
    said = [text for text in texts if isinstance(text, str)]
    return "\n".join(said) if len(said) == len(blocks) else ""


def line(done: StepResult) -> str:
    """A step and what came of it in one readable line."""
    said = read(done.result).text
    label = done.text.strip().rstrip(".;,")
    return f"{label[:1].upper()}{label[1:]}{'' if label.endswith('?') else ':'} {said}"


def composed(inputs: tuple[StepResult, ...]) -> str:
    """What a writing tool is given: one line per input; a single long text as it is."""
    if len(inputs) == 1:
        said = read(inputs[0].result).text
        if "\n" in said or len(said) > _LONG:
            return said
    return "\n".join(line(done) for done in inputs)


def find_field(data: Any, name: str, depth: int = 0) -> Any:
    """The value of a field of this name, however its name is written; None where there is none."""
    if depth > 4:
        return None
    if isinstance(data, Mapping):
        plain = re.sub(r"[^a-z0-9]", "", name.lower())
        for key, value in data.items():
            if re.sub(r"[^a-z0-9]", "", str(key).lower()) == plain:
                return value
    for value in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        if (found := find_field(value, name, depth + 1)) is not None:
            return found
    return None


def _salient(data: Mapping[str, Any]) -> tuple[str, Any]:
    usable = {k: v for k, v in data.items() if v not in (None, "") and not _ORIGIN.search(str(k).lower())}
    for wanted in SALIENT:
        for key, value in usable.items():
            if str(key).lower() == wanted:
                return str(key), value
    plain = {k: v for k, v in usable.items() if _is_number(v)}
    if len(plain) == 1:
        return next(iter(plain.items()))
    if len(usable) == 1:
        return next(iter(usable.items()))
    return "", data


def _in_words(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        key, inner = _salient(value)
        if not key:
            return json.dumps(value, ensure_ascii=False, default=str)
        zone = value.get("timezone")
        said = _in_words(inner)
        return f"{said} ({zone})" if isinstance(zone, str) and zone not in said and key != "timezone" else said
    return json.dumps(value, ensure_ascii=False, default=str)


def _unit(data: Mapping[str, Any]) -> str:
    units = [
        v
        for k, v in data.items()
        if "unit" in str(k).lower() and isinstance(v, str) and not _ORIGIN.search(str(k).lower())
    ]
    return units[0] if units else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def numbers_in(text: str) -> Iterator[float | int]:
    """The plain numbers of a text; dates, times and identifiers are passed over."""
    for match in _NUMBER.finditer(text):
        digits = match.group().replace(",", "").replace("−", "-")
        value = float(digits)
        if math.isfinite(value):
            yield value if "." in digits or "e" in digits.lower() else int(digits)


def _last_number(text: str) -> float | int | None:
    found = list(numbers_in(text))
    parts = re.split(r"=|≈|->|→|\b(?:is|are|equals)\b", text)
    if len(parts) == 2:
        after = list(numbers_in(parts[1]))
        return after[0] if after else None
    return found[0] if len(found) == 1 else None
