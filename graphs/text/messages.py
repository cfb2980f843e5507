"""Makes parts of messages for people: numbers with nouns, and the errors of a validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


def counted(number: int, word: str, plural: str = "") -> str:
    """Returns a number with its noun, for example ``1 agent`` or ``2,000 agents``; ``plural`` is an irregular form."""
    noun = word if number == 1 else plural or f"{word}s"
    return f"{number:,} {noun}"


def error_lines(error: ValidationError) -> str:
    """Returns the errors of a validation as one line, each with the path of its field."""
    lines = list[str]()
    for detail in error.errors():
        place = ".".join(map(str, detail["loc"])) or "arguments"
        lines.append(f"{place}: {detail['msg']}")
    return "; ".join(lines)
