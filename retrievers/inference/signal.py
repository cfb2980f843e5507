"""A sign that one tool needs another, before the signs are put together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hint:
    """One sign that one tool needs another.

    Attributes:
        source: Row of the tool that needs the other.
        target: Row of the tool that is needed.
        parameter: The argument that it is about; None where it is about the whole call.
        confidence: How likely the edge is right, 0 to 1.
        direct: Whether the source can hardly do without it.
        evidence: Why, in one line.
    """

    source: int
    target: int
    parameter: str | None
    confidence: float
    direct: bool
    evidence: str
