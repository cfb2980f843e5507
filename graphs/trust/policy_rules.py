"""The rules of a policy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property, lru_cache
from typing import Any, Literal

from pydantic import model_serializer, model_validator

from callsheet.graphs.capabilities.taxonomy import default_taxonomy
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.catalog.record import Name, Record
from callsheet.graphs.text.sanitizing import normalized, shown

Hint = Literal["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
READ_ONLY: Mapping[Hint, bool] = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
"""The hints of a tool of ours that only reads what lies here."""
UNKNOWN: Mapping[Hint, bool] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""The hints of an untrusted tool: MCP's defaults."""


@dataclass(frozen=True, slots=True)
class User:
    """A user.

    Attributes:
        id: Id from the authentication; empty for an anonymous user.
        groups: Groups from the authentication.
    """

    id: str = ""
    groups: frozenset[str] = frozenset()


class Rule(Record):
    """Conditions on tools; a tool must meet all of them.

    Attributes:
        id: Pattern of the tool's id or of its agent's: ``files/read_*``, ``git``, ``*/delete*``.
        capability: Id of a capability of the tool, or of a broader one.
        annotations: MCP's hints of the tool, by name.
    """

    id: Name | None = None
    capability: Name | None = None
    annotations: dict[Hint, bool] | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Rule:
        if self.id is None and self.capability is None and not self.annotations:
            raise CatalogError('a rule must be a pattern, or an object with "id", "capability" or "annotations"')
        return self

    @model_serializer(mode="wrap")
    def _as_text(self, write: Any) -> Any:
        plain = {key: value for key, value in write(self).items() if value is not None}
        return self.id if set(plain) == {"id"} else plain

    def __str__(self) -> str:
        """The rule as in a policy file."""
        return str(self.model_dump()) if self.capability or self.annotations else repr(self.id)


@dataclass(frozen=True)
class Rules:
    """All rules that apply to one user.

    Attributes:
        default: Whether a tool that matches no rule is allowed.
        allows: Rules of allowed tools.
        denies: Rules of forbidden tools; they override the others.
        trust: Patterns of trusted agents.
    """

    default: bool
    allows: tuple[Rule, ...]
    denies: tuple[Rule, ...]
    trust: tuple[str, ...]

    @cached_property
    def key(self) -> str:
        """A key that users with the same rules share."""
        return repr((self.default, self.allows, self.denies, self.trust))

    def allow(self, tool: Tool) -> bool:
        """Whether the tool may be seen and called."""
        if self.deny(tool):
            return False
        return self.default or any(self.fits(rule, tool, claims=False) for rule in self.allows)

    def deny(self, tool: Tool) -> bool:
        """Whether a rule forbids the tool; the default does not count."""
        return any(self.fits(rule, tool, claims=True) for rule in self.denies)

    def trusts(self, agent: str) -> bool:
        """Whether the agent's claims are trusted."""
        return any(_pattern(pattern).match(agent) for pattern in self.trust)

    def fits(self, rule: Rule, tool: Tool, *, claims: bool) -> bool:
        """Whether a rule matches a tool.

        Args:
            rule: The rule.
            tool: The tool.
            claims: Whether the rule restricts access. Then claimed capabilities count without trust, and names match
                in any spelling: with capitals, invisible characters, or wide letters.
        """
        trusted = self.trusts(tool.agent)
        if rule.id is not None and not _id_matches(rule.id, tool, loosely=claims):
            return False
        if rule.capability is not None and not ((claims or trusted) and _has_capability(tool, rule.capability)):
            return False
        actual = hints(tool, trusted=trusted)
        return all(actual[name] is value for name, value in (rule.annotations or {}).items())


def hints(tool: Tool, *, trusted: bool) -> dict[Hint, bool]:
    """The effective values of MCP's four hints of a tool.

    Hints are claims of the server's author: without trust, the defaults apply. With trust, a read-only tool is not
    destructive and is idempotent.
    """
    if not trusted:
        return dict(UNKNOWN)
    claims: dict[Hint, bool] = {
        name: claim for name in UNKNOWN if isinstance(claim := tool.annotations.get(name), bool)
    }
    harmless: dict[Hint, bool] = {"destructiveHint": False, "idempotentHint": True}
    return {**UNKNOWN, **claims, **(harmless if claims.get("readOnlyHint") else {})}


def _id_matches(pattern: str, tool: Tool, *, loosely: bool) -> bool:
    exact = _pattern(pattern)
    if exact.match(tool.id) or exact.match(tool.agent):
        return True
    folded = _pattern(_folded(pattern))
    return loosely and bool(folded.match(_folded(tool.id)) or folded.match(_folded(tool.agent)))


def _has_capability(tool: Tool, capability: str) -> bool:
    known = default_taxonomy().by_id
    return any(
        capability == own or (own in known and capability in default_taxonomy().ancestors(own))
        for own in tool.capabilities
    )


def _folded(text: str) -> str:
    return normalized("NFKC", shown(text, most=None)).casefold()


@lru_cache(maxsize=4_096)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
