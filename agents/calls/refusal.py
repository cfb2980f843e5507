"""The reason why a call must not be sent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a call must not be sent, in words for a model and a person.

    Whatever examines a call returns a ``Refusal``, or None if the call may be sent.

    Attributes:
        reason: The reason, as a sentence, or as a phrase that follows the names of agent and tool.
    """

    reason: str

    def __str__(self) -> str:
        return self.reason
