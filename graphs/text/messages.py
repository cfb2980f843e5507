"""Parts of messages for people: numbers with their nouns, and the errors of a validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


def counted(number: int, word: str, plural: str = "") -> str:
    """Returns a number with its noun: ``1 agent``, ``2,000 agents``; with a ``plural``, ``3 queries``."""
    noun = word if number == 1 else plural or f"{word}s"
    return f"{number:,} {noun}"


def error_lines(error: ValidationError) -> str:
    """Returns the errors of a validation in one line, each with its place."""
    lines = list[str]()
    for detail in error.errors():
        place = ".".join(map(str, detail["loc"])) or "arguments"
        lines.append(f"{place}: {detail['msg']}")
    return "; ".join(lines)
