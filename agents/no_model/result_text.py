"""Results of tools as texts for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from callsheet.agents.planning.plan import StepResult


def in_words(output: str) -> str:
    """A tool's output: a text as it is, JSON as its fields and values."""
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return output.strip()
    return "; ".join(f"{name} {inner}".strip() for name, inner in _fields("", value))


def joined(results: Sequence[StepResult]) -> str:
    """The text to write: a single result, or a line for each of several."""
    if len(results) == 1:
        return results[0].result
    return "\n".join(f"{result.text.strip()}: {result.result}" for result in results)


def _fields(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The plain values inside a value, each with the names that lead to it."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from _fields(f"{name} {str(key).replace('_', ' ')}".strip(), inner)
        case list() if any(isinstance(inner, dict | list) for inner in value):
            for inner in value:
                yield from _fields(name, inner)
        case list():
            yield name, ", ".join(map(_plain, value))
        case _:
            yield name, _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        value = float(f"{value:.12g}")  # not 160.01999999999998
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
