"""One rule of a policy, and what several rules say of a tool."""

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
from callsheet.graphs.catalog.model import Name, Record, Tool
from callsheet.graphs.text.sanitizing import normalized, shown

Hint = Literal["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
UNKNOWN: Mapping[Hint, bool] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""What has to be assumed of a tool that nobody trusted says anything about; MCP's own defaults."""


@dataclass(frozen=True, slots=True)
class User:
    """Who asks.

    Attributes:
        id: As the authentication says; empty for nobody in particular.
        groups: Groups that the authentication names.
    """

    id: str = ""
    groups: frozenset[str] = frozenset()


class Rule(Record):
    """Tools that all of these fit; a text alone is an ``id``.

    Attributes:
        id: Pattern of the tool's id, or of its agent's for all tools of that: ``files/read_*``, ``git``, ``*/delete*``.
        capability: Id of a capability that it has, or one that is narrower.
        annotations: MCP's hints that it has, by name.
    """

    id: Name | None = None
    capability: Name | None = None
    annotations: dict[Hint, bool] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Rule:
        if self.id is None and self.capability is None and not self.annotations:
            raise CatalogError('a rule must be a pattern, or an object with "id", "capability" or "annotations"')
        return self

    @model_serializer(mode="wrap")
    def _as_text(self, write: Any) -> Any:
        plain = {key: value for key, value in write(self).items() if value is not None}
        return self.id if set(plain) == {"id"} else plain

    def __str__(self) -> str:
        """As a file says it."""
        return str(self.model_dump()) if self.capability or self.annotations else repr(self.id)


@dataclass(frozen=True)
class Rules:
    """All rules that concern one user.

    Attributes:
        default: Whether a tool that no rule fits is allowed.
        allows: Rules of what is allowed.
        denies: Rules of what is not; they win.
        trust: Patterns of agents that are taken at their word.
    """

    default: bool
    allows: tuple[Rule, ...]
    denies: tuple[Rule, ...]
    trust: tuple[str, ...]

    @cached_property
    def key(self) -> str:
        """The same for users with the same rules."""
        return repr((self.default, self.allows, self.denies, self.trust))

    def allow(self, tool: Tool) -> bool:
        """Whether the tool may be seen and called."""
        if any(self.fits(rule, tool, claims=True) for rule in self.denies):
            return False
        return self.default or any(self.fits(rule, tool, claims=False) for rule in self.allows)

    def trusts(self, agent: str) -> bool:
        """Whether the agent is taken at its word."""
        return any(_pattern(pattern).match(agent) for pattern in self.trust)

    def fits(self, rule: Rule, tool: Tool, *, claims: bool) -> bool:
        """Whether a rule fits a tool.

        Args:
            rule: The rule.
            tool: The tool.
            claims: Whether the rule tightens, so that capabilities which an agent claims count without trust in it,
                and a name counts however it is written: with capitals, invisible characters, or in wide letters.
        """
        trusted = self.trusts(tool.agent)
        if rule.id is not None and not _named(rule.id, tool, loosely=claims):
            return False
        if rule.capability is not None and not ((claims or trusted) and _can(tool, rule.capability)):
            return False
        told = hints(tool, trusted=trusted)
        return all(told[name] is wanted for name, wanted in (rule.annotations or {}).items())


def hints(tool: Tool, *, trusted: bool) -> dict[Hint, bool]:
    """MCP's four hints of a tool as far as they may be relied on.

    Hints are claims of the server's author: without trust the worst has to be assumed, so they can tighten nothing
    further and loosen nothing. With trust, a tool that only reads destroys nothing and may be repeated.
    """
    if not trusted:
        return dict(UNKNOWN)
    given: dict[Hint, bool] = {name: tool.annotations[name] for name in UNKNOWN if _is_bool(tool.annotations.get(name))}
    harmless: dict[Hint, bool] = {"destructiveHint": False, "idempotentHint": True}
    return {**UNKNOWN, **given, **(harmless if given.get("readOnlyHint") else {})}


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _named(pattern: str, tool: Tool, *, loosely: bool) -> bool:
    exact = _pattern(pattern)
    if exact.match(tool.id) or exact.match(tool.agent):
        return True
    folded = _pattern(_folded(pattern))
    return loosely and bool(folded.match(_folded(tool.id)) or folded.match(_folded(tool.agent)))


def _can(tool: Tool, capability: str) -> bool:
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
