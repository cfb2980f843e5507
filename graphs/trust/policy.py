"""Policies: who may see and call which tools; applied before ranking and again before a call."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from callsheet.graphs.catalog.errors import CatalogError, SettingsError
from callsheet.graphs.catalog.finding import Finding, Severity
from callsheet.graphs.catalog.model import SKILLS, Catalog, Tool
from callsheet.graphs.catalog.record import Name, Record
from callsheet.graphs.trust.policy_rules import Rule, Rules, User
from callsheet.graphs.trust.view import View, view_of

Default = Literal["allow", "deny"]
_MOST_VIEWS = 32
_PATTERN = StringConstraints(min_length=1, pattern=r"\S")


def _as_rules(value: Any) -> Any:
    return [_as_rule(item) for item in value] if isinstance(value, list | tuple) else value


def _as_rule(value: Any) -> Any:
    if isinstance(value, str):
        return Rule(id=value)
    return Rule(**value) if isinstance(value, dict) else value


Patterns = Annotated[tuple[Rule | str | dict[str, Any], ...], BeforeValidator(_as_rules)]
"""Rules; a string is short for a rule with that ``id``."""


class Grants(Record):
    """Additional rules.

    Attributes:
        allow: Rules of tools that may be seen and called.
        deny: Rules of tools that may not; they override ``allow``.
    """

    allow: Patterns = ()
    deny: Patterns = ()


class Group(Grants):
    """Grants of several users.

    Attributes:
        members: Ids of users; users whose authentication names the group are members too.
    """

    members: tuple[Name, ...] = ()


class Policy(Record):
    """Who may see and call which agents and tools; deny overrides allow.

    Attributes:
        default: For tools that no rule matches.
        allow: Rules for everyone.
        deny: Rules for everyone; they override every ``allow``, also those of groups and users.
        trust: Patterns of agents whose own claims about their tools (MCP's hints, capabilities) may relax checks.
        commands: Patterns of command lines that a catalog may start; any if missing.
        reviewers: Users and groups who may accept and reject in the explorer of a server.
        groups: More rules by group.
        users: More rules by the user's id.
        callsheet_policy: Version of the format.
    """

    model_config = ConfigDict(ignored_types=(cached_property,))

    default: Default
    allow: Patterns = ()
    deny: Patterns = ()
    trust: tuple[Annotated[str, _PATTERN], ...] = ()
    commands: tuple[Annotated[str, _PATTERN], ...] | None = None
    reviewers: tuple[Name, ...] = ()
    groups: dict[Name, Group] = Field(default_factory=dict)
    users: dict[Name, Grants] = Field(default_factory=dict)
    callsheet_policy: Literal[1] = 1

    @cached_property
    def _cache(self) -> tuple[threading.Lock, dict[User, Rules], OrderedDict[Any, tuple[Catalog, View]]]:
        return threading.Lock(), {}, OrderedDict()

    def allows(self, tool: Tool, user: User | str | None = None) -> bool:
        """Whether a user may see and call a tool.

        Args:
            tool: The tool.
            user: The user; None: only the rules for everyone apply.
        """
        return self._rules(_user(user)).allow(tool)

    def denies(self, tool: Tool, user: User | str | None = None) -> bool:
        """Whether a rule forbids a tool to a user; the default does not count."""
        return self._rules(_user(user)).deny(tool)

    def trusts(self, agent: str) -> bool:
        """Whether an agent's claims may relax checks, as ``readOnlyHint`` relaxes approval."""
        return self._rules(User()).trusts(agent)

    def reviews(self, user: User) -> bool:
        """Whether a user or one of the user's groups is named as a reviewer; an anonymous user is not.

        If a name is both a user's id and a group of the policy, it means the group.
        """
        groups = {name for name, group in self.groups.items() if user.id in group.members} | user.groups
        return bool(user.id) and not (groups | ({user.id} - self.groups.keys())).isdisjoint(self.reviewers)

    def view(self, catalog: Catalog, user: User | str | None = None) -> View:
        """The part of a catalog that a user may see, cached for each set of rules.

        A tool that requires a forbidden tool is left out too, because it cannot work.
        """
        rules = self._rules(_user(user))
        lock, _, views = self._cache
        key = (id(catalog), rules.key)
        with lock:
            if key in views:
                views.move_to_end(key)
                return views[key][1]
        view = view_of(catalog, rules.allow)
        with lock:
            views[key] = (catalog, view)
            while len(views) > _MOST_VIEWS:
                views.popitem(last=False)
        return view

    def findings(self, *catalogs: Catalog) -> tuple[Finding, ...]:
        """Findings for rules that match no tool or skill of these catalogs: a ``deny`` with a typo forbids nothing.

        Args:
            catalogs: Catalogs under this policy; resources and prompts have their own (``Loaded.of_resources``).
        """
        skills = [skill for catalog in catalogs for skill in catalog.skills]
        tools = [tool for catalog in catalogs for tool in catalog.tools.values()]
        tools += [Tool(agent=SKILLS, name=skill.name) for skill in skills]
        everyone = self._rules(User())
        return tuple(
            Finding(
                Severity.WARNING,
                "policy-rule-without-effect",
                f"the policy's {place} has the rule {rule}, which matches nothing in the catalog: correct or remove it",
            )
            for place, rule in self._all_rules()
            if not any(everyone.fits(rule, tool, claims=True) for tool in tools)
        )

    def _all_rules(self) -> list[tuple[str, Rule]]:
        sections: list[tuple[str, Grants | Policy]] = [("", self)]
        sections += [(f"group {name!r}, ", group) for name, group in self.groups.items()]
        sections += [(f"user {name!r}, ", grants) for name, grants in self.users.items()]
        return [
            (f"{where}{effect}", rule)
            for where, grants in sections
            for effect, rules in (("allow", grants.allow), ("deny", grants.deny))
            for rule in _rules_of(rules)
        ]

    def _rules(self, user: User) -> Rules:
        lock, cache, _ = self._cache
        with lock:
            rules = cache.get(user)
        if rules is None:
            groups = self.groups.items()
            sections: list[Grants | Policy] = [self]
            sections += [group for name, group in groups if user.id in group.members or name in user.groups]
            if user.id in self.users:
                sections.append(self.users[user.id])
            rules = Rules(
                default=self.default == "allow",
                allows=tuple(rule for grants in sections for rule in _rules_of(grants.allow)),
                denies=tuple(rule for grants in sections for rule in _rules_of(grants.deny)),
                trust=self.trust,
            )
            with lock:
                if len(cache) >= _MOST_VIEWS * 32:
                    cache.clear()
                cache[user] = rules
        return rules


def read_policy(path: str | Path) -> Policy:
    """A policy from a JSON file.

    Raises:
        SettingsError: The file cannot be read, or is not a policy.
    """
    try:
        content: Any = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"the policy {path} cannot be read: {error}") from error
    if not isinstance(content, Mapping) or "default" not in content:
        raise SettingsError(f'the policy {path} must be an object with "default": "allow" or "deny"')
    try:
        return Policy(**content)
    except (CatalogError, TypeError) as error:
        raise SettingsError(f"the policy {path}: {error}") from error


def policy_of(policy: Policy | str | Path | None) -> Policy | None:
    """A policy, or the policy in a file; None: the file in ``CALLSHEET_POLICY``, if set.

    Raises:
        SettingsError: The file cannot be read, or is not a policy.
    """
    if isinstance(policy, Policy):
        return policy
    path = policy or os.environ.get("CALLSHEET_POLICY")
    return read_policy(path) if path else None


def _rules_of(patterns: tuple[Any, ...]) -> tuple[Rule, ...]:
    return cast("tuple[Rule, ...]", patterns)


def _user(user: User | str | None) -> User:
    return user if isinstance(user, User) else User(user or "")
