"""A call after all checks: the one value that is shown to a person, approved, recorded and sent."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.registry.assurance import Assurance
from callsheet.agents.safety.arguments import Fit, FitTo
from callsheet.graphs.trust.pins import digest


class Approval(NamedTuple):
    """A person's approval: the ``digest`` of the approved call, and the time, in seconds since 1970."""

    digest: str
    when: float


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call that is checked once, before a person is asked about it, and verified again only before it is sent.

    Attributes:
        tool_id: Id of the tool.
        arguments: The arguments by the tool's own names; placeholders replace secrets.
        assurance: What is known about the tool.
        pin: Digest of the tool's definition.
        digest: The hash to which an approval is bound: ``call_digest`` of tool, definition and arguments.
        open_digest: SHA-256 of tool and arguments, without secrets and definition, by which a later run recognises the
            call if its outcome is unknown. Empty for a call that may be repeated, of which no record is made.
        fit: Whether the arguments fit the tool's schema.
        fit_to: Validates the arguments, with their secrets; the result is cached as long as the schema is the same.
        inexact: Why the arguments cannot be stored and sent as they are; then nothing else of them was checked.
        approval: A person's approval of this call; None if nobody was asked.
    """

    tool_id: str
    arguments: Mapping[str, Any]
    assurance: Assurance
    pin: str
    digest: str
    open_digest: str
    fit: Fit
    fit_to: FitTo = field(repr=False)
    inexact: Refusal | None = None
    approval: Approval | None = None

    def is_of(self, tool_id: str, arguments: Mapping[str, Any]) -> bool:
        """Returns whether this is a call of a tool with exactly these arguments; 1 differs from 1.0 and from true."""
        return self.tool_id == tool_id and repr(self.arguments) == repr(arguments)


CHECKED: ContextVar[CheckedCall | None] = ContextVar("callsheet_checked_call", default=None)
"""The call that is being sent; None for a call that was not checked before."""


def call_digest(tool_id: str, pin: str, arguments: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of what an approval covers: the tool, its definition, and the arguments."""
    return digest([tool_id, pin, arguments])
