"""Findings: the results of checks on a catalog."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a catalog.

    Attributes:
        severity: How serious it is.
        rule: Name of the rule, in words joined by hyphens.
        message: What is wrong, where, and how to correct it.
        agent: Id of the agent; empty if the finding is about the whole catalog.
        tool: Id of the tool; empty if the finding is about an agent or the whole catalog.
    """

    severity: Severity
    rule: str
    message: str
    agent: str = ""
    tool: str = ""

    def to_dict(self) -> dict[str, str]:
        """The finding as JSON values."""
        return {name: str(value) for name, value in asdict(self).items()}
