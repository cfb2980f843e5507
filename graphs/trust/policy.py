"""Who may see and call what: a file of rules, applied before ranking and again when a tool is called."""

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
from callsheet.graphs.catalog.model import Catalog, Name, Record, Tool
from callsheet.graphs.trust.policy_rules import Rule, Rules, User
from callsheet.graphs.trust.view import View, view_of

Default = Literal["allow", "deny"]
_MOST_VIEWS = 32
_PATTERN = StringConstraints(min_length=1, pattern=r"\S")


def _as_rules(given: Any) -> Any:
    return [_as_rule(item) for item in given] if isinstance(given, list | tuple) else given


def _as_rule(given: Any) -> Any:
    if isinstance(given, str):
        return Rule(id=given)
    return Rule(**given) if isinstance(given, dict) else given


Patterns = Annotated[tuple[Rule | str | dict[str, Any], ...], BeforeValidator(_as_rules)]
"""Rules; a text stands for the rule with that ``id``, an object for the rule with those fields."""


class Grants(Record):
    """What is allowed and denied beyond the rest of the policy.

    Attributes:
        allow: Rules of what may be seen and called.
        deny: Rules of what may not; they win.
    """

    allow: Patterns = ()
    deny: Patterns = ()


class Group(Grants):
    """Grants of several users.

    Attributes:
        members: Ids of users; one whose authentication names the group is a member too.
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
    groups: dict[Name, Group] = Field(default_factory=dict)
    users: dict[Name, Grants] = Field(default_factory=dict)
    callsheet_policy: Literal[1] = 1

    @cached_property
    def _kept(self) -> tuple[threading.Lock, dict[User, Rules], OrderedDict[Any, tuple[Catalog, View]]]:
        return threading.Lock(), {}, OrderedDict()

    def allows(self, tool: Tool, user: User | str | None = None) -> bool:
        """Whether a user may see and call a tool.

        Args:
            tool: The tool.
            user: Who it is; None for nobody in particular, whom only the rules for everybody concern.
        """
        return self._rules(_user(user)).allow(tool)

    def trusts(self, agent: str) -> bool:
        """Whether an agent's own words may loosen something, such as ``readOnlyHint`` that no person is asked."""
        return self._rules(User()).trusts(agent)

    def view(self, catalog: Catalog, user: User | str | None = None) -> View:
        """What a user may see of a catalog; made once for each set of rules and remembered.

        A tool that requires one that is not allowed is left out too, for it could not do its work.
        """
        rules = self._rules(_user(user))
        lock, _, views = self._kept
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

    def findings(self, catalog: Catalog) -> tuple[Finding, ...]:
        """Rules that name nothing of a catalog: a slip of the pen in a ``deny`` forbids nothing."""
        tools = list(catalog.tools.values())
        everyone = self._rules(User())
        return tuple(
            Finding(
                Severity.WARNING,
                "policy-rule-without-effect",
                f"the policy's {place} has the rule {rule}, which no tool of the catalog fits: correct or remove it",
            )
            for place, rule in self._all_rules()
            if not any(everyone.fits(rule, tool, claims=True) for tool in tools)
        )

    def _all_rules(self) -> list[tuple[str, Rule]]:
        held: list[tuple[str, Grants | Policy]] = [("", self)]
        held += [(f"group {name!r}, ", group) for name, group in self.groups.items()]
        held += [(f"user {name!r}, ", grants) for name, grants in self.users.items()]
        return [
            (f"{where}{effect}", rule)
            for where, grants in held
            for effect, rules in (("allow", grants.allow), ("deny", grants.deny))
            for rule in _rules_of(rules)
        ]

    def _rules(self, user: User) -> Rules:
        lock, known, _ = self._kept
        with lock:
            found = known.get(user)
        if found is None:
            groups = self.groups.items()
            granted: list[Grants | Policy] = [self]
            granted += [g for name, g in groups if user.id in g.members or name in user.groups]
            if user.id in self.users:
                granted.append(self.users[user.id])
            found = Rules(
                default=self.default == "allow",
                allows=tuple(rule for grants in granted for rule in _rules_of(grants.allow)),
                denies=tuple(rule for grants in granted for rule in _rules_of(grants.deny)),
                trust=self.trust,
            )
            with lock:
                if len(known) >= _MOST_VIEWS * 32:
                    known.clear()
                known[user] = found
        return found


def read_policy(path: str | Path) -> Policy:
    """A policy from a JSON file.

    Raises:
        SettingsError: The file cannot be read or is not a policy; the message says what is wrong and where.
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


def policy_of(given: Policy | str | Path | None) -> Policy | None:
    """A policy as it is given: itself, a file, or None for that of ``CALLSHEET_POLICY``, if that is set.

    Raises:
        SettingsError: The file cannot be read or is not a policy.
    """
    if isinstance(given, Policy):
        return given
    named = given or os.environ.get("CALLSHEET_POLICY")
    return read_policy(named) if named else None


def _rules_of(patterns: tuple[Any, ...]) -> tuple[Rule, ...]:
    return cast("tuple[Rule, ...]", patterns)


def _user(user: User | str | None) -> User:
    return user if isinstance(user, User) else User(user or "")
