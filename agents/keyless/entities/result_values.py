"""The result of a step as one readable line, a number and a unit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from callsheet.agents.keyless.entities.evidence import exact_number
from callsheet.agents.planning.plan import StepResult

_SALIENT = (
    "result", "converted_value", "converted", "answer", "value", "output", "target", "mean", "average", "total", "sum",
    "count", "datetime", "time", "text", "content", "message", "summary", "price", "amount", "data", "id", "name",
)  # fmt: skip
"""Names of fields that hold the result, the most likely first."""
_ORIGIN = re.compile(r"(?:^|_)(?:original|from|input|source)(?:_|$)")
_NUMBER = re.compile(r"(?<![\w.:/-])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w:/-])")


@dataclass(frozen=True, slots=True)
class Reading:
    """A result in the form that later steps and people use.

    Attributes:
        text: The essential part as text.
        number: Its number, if there is exactly one.
        unit: The unit next to it, if any.
    """

    text: str
    number: float | int | None = None
    unit: str = ""


def read(result: str) -> Reading:
    """Reads a tool's output, plain text or JSON."""
    try:
        data = json.loads(result)
    except ValueError:
        data = result.strip()
    if isinstance(data, str):
        return Reading(data, _only_number(data), data)
    if (text := _text_of_blocks(data)) or not isinstance(data, Mapping):
        return read(text) if text else Reading(_in_words(data), data if _is_number(data) else None)
    value = _salient(data)
    if text := _text_of_blocks(value):
        value = text
    said = _with_zone(_in_words(value), data)
    unit = next((v for k, v in data.items() if "unit" in k.lower() and isinstance(v, str) and not _is_origin(k)), "")
    if _is_number(value):
        return Reading(f"{said} {unit}".strip(), value, unit)
    inner = read(json.dumps(value)).number if value is not data and isinstance(value, Mapping) else None
    return Reading(said, _only_number(said) if isinstance(value, str) else inner, unit)


def line(done: StepResult) -> str:
    """A step and its result in one readable line."""
    said = read(done.result).text
    label = done.text.strip().rstrip(".;,")
    return f"{label[:1].upper()}{label[1:]}{'' if label.endswith('?') else ':'} {said}"


def composed(inputs: tuple[StepResult, ...]) -> str:
    """The text for a writing tool: a single result unchanged, or one line per result."""
    if len(inputs) == 1:
        return read(inputs[0].result).text
    return "\n".join(line(done) for done in inputs)


def _text_of_blocks(value: Any) -> str:
    """The text of MCP content blocks, if a tool wrote them as JSON; empty for anything else."""
    blocks = value if isinstance(value, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, Mapping)]
    said = [text for text in texts if isinstance(text, str)]
    return "\n".join(said) if len(said) == len(blocks) else ""


def _salient(data: Mapping[str, Any]) -> Any:
    """The field that holds the result; the whole object if there is none."""
    usable = {str(k).lower(): v for k, v in data.items() if v not in (None, "") and not _is_origin(k)}
    named = [usable[name] for name in _SALIENT if name in usable]
    numbers = [value for value in usable.values() if _is_number(value)]
    return next(
        (found[0] for found in (named, numbers, [*usable.values()]) if found and (found is named or len(found) == 1)),
        data,
    )


def _is_origin(key: str) -> bool:
    return bool(_ORIGIN.search(str(key).lower()))


def _in_words(value: Any) -> str:
    if isinstance(value, str):
        return value
    inner = _salient(value) if isinstance(value, Mapping) else value
    if inner is value or not isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return _with_zone(_in_words(inner), value)


def _with_zone(said: str, data: Mapping[str, Any]) -> str:
    """A value with the time zone beside it: a place may have been read as another one."""
    zone = data.get("timezone")
    return f"{said} ({zone})" if isinstance(zone, str) and zone not in said else said


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _only_number(text: str) -> float | int | None:
    """The only plain number in a text, or the first after its only "=" or "is"; dates and times do not count."""
    parts = re.split(r"=|≈|->|→|\b(?:is|are|equals)\b", text)
    found = [match.group() for match in _NUMBER.finditer(parts[-1] if len(parts) == 2 else text)]
    if not found or (len(parts) != 2 and len(found) != 1):
        return None
    value = float(found[0].replace(",", "").replace("−", "-"))
    whole = not re.search(r"[.eE]", found[0])
    return exact_number(value, whole=whole) if math.isfinite(value) or not whole else None
