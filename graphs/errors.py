"""The errors that Callsheet raises, and the findings of checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

_LONGEST_HINT = 200
_Entry = TypeVar("_Entry")


class CallsheetError(Exception):
    """Base class of the errors that Callsheet raises."""


class CatalogError(CallsheetError, ValueError):
    """Raised if a catalog, or a file that it is read from, is invalid."""


class UnknownNameError(CallsheetError, KeyError):
    """Raised if the catalog has no agent or tool with this name."""

    def __str__(self) -> str:
        """The message without the quotation marks that KeyError adds."""
        return str(self.args[0])


class SettingsError(CallsheetError, ValueError):
    """Raised if a setting has an invalid value."""


class TrustError(CallsheetError):
    """Raised if a command of the catalog has no consent, or if the stored pins cannot be used."""


class RequestError(CallsheetError, ValueError):
    """Raised if a request or a query is too long."""


class PlanError(CallsheetError, ValueError):
    """Raised if a plan is not a directed acyclic graph of existing steps."""


def lookup(entries: Mapping[str, _Entry], name: str, kind: str, where: str) -> _Entry:
    """Returns the entry of this name, or raises ``UnknownNameError``, which suggests similar names."""
    if name not in entries:
        raise UnknownNameError(f"no {kind} {name!r} in the {where}{near_names(name, entries)}")
    return entries[name]


def needs_extra(extra: str) -> str:
    """Returns the part of an error message that names an extra that is not installed: "needs the extra rdf, ..."."""
    return f"needs the extra {extra}, which is not installed: in the checkout, pip install '.[{extra}]'"


def near_names(name: str, known: Iterable[str]) -> str:
    """Returns a hint " (did you mean ...?)" with similar names; empty if there is none, or the name is long."""
    similar = near_ids(name, known)
    return f" (did you mean {' or '.join(map(repr, similar))}?)" if similar else ""


def near_ids(name: str, known: Iterable[str]) -> list[str]:
    """Returns at most three similar names, the nearest first; none for a long name."""
    # Two names are compared in quadratic time, and servers may send names of any length.
    if len(name) > _LONGEST_HINT:
        return []
    short = [other for other in known if len(other) <= _LONGEST_HINT]
    return get_close_matches(name, short, n=3) if short else []


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem in a catalog: what is wrong, where, and how to correct it.

    The id of the agent or the tool is empty if the finding does not concern one.
    """

    severity: Severity
    rule: str
    message: str
    agent: str = ""
    tool: str = ""

    def to_dict(self) -> dict[str, str]:
        """Returns the finding as JSON values."""
        return {name: str(value) for name, value in asdict(self).items()}
