"""What a look at a catalog found: something for its author, or whoever runs it, to know."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found.

    Attributes:
        severity: How much it matters.
        rule: The rule that found it, in a few words joined by hyphens.
        message: What, which, and how to cure it.
        agent: Id of the agent it is about; empty where it is about the whole.
        tool: Id of the tool it is about; empty where it is about an agent or the whole.
    """

    severity: Severity
    rule: str
    message: str
    agent: str = ""
    tool: str = ""

    def to_dict(self) -> dict[str, str]:
        """Plain values."""
        return {name: str(value) for name, value in asdict(self).items()}
