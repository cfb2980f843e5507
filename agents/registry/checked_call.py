"""A call after all checks: the one value that is shown to a person, approved, recorded and sent."""

from __future__ import annotations

import unicodedata
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
        open_digest: ``open_digest``, by which a later run recognises the call if its outcome is unknown. Empty for a
            call that may be repeated, of which no record is made.
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


def open_digest(tool_id: str, schema: Mapping[str, object], arguments: Mapping[str, object]) -> str:
    """Returns the SHA-256 of a call, which is the same for calls that mean the same.

    Numbers count by their value (5 is 5.0), texts in Unicode's normal form; an argument that is null, or has the
    default that the schema declares, counts as not given.

    Args:
        tool_id: Id of the tool.
        schema: The schema of its arguments, without references.
        arguments: The arguments, without secrets.
    """
    declared = schema.get("properties")
    properties = declared if isinstance(declared, Mapping) else {}
    given = dict[str, object]()
    for name, value in arguments.items():
        of_schema = properties.get(name)
        default = _meant(of_schema.get("default")) if isinstance(of_schema, Mapping) else None
        meant = _meant(value)
        is_default = type(meant) is type(default) and meant == default  # for Python, true is 1
        if value is not None and not is_default:
            given[name] = meant
    return digest([tool_id, given])


def _meant(value: object) -> object:
    """Returns a value of JSON in the one form of all values that mean the same."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case str():
            return unicodedata.normalize("NFC", value)
        case list() | tuple():
            return [_meant(item) for item in value]
        case Mapping():
            return {_meant(key): _meant(item) for key, item in value.items()}
        case _:
            return value
