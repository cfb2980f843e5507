"""Policies determine who may see and call which tools; they apply before ranking and again before a call."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from callsheet.graphs.capabilities.taxonomy import SHIPPED, shipped_taxonomy
from callsheet.graphs.catalog.model import Agent, Catalog, Name, Record, Skill, Tool
from callsheet.graphs.errors import CatalogError, Finding, SettingsError, Severity
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.messages import counted
from callsheet.graphs.text.regular_files import read_regular
from callsheet.graphs.text.unicode import normalized

Hint = Literal["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
READ_ONLY: Mapping[Hint, bool] = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
"""The hints of a built-in tool that only reads local data."""
UNKNOWN: Mapping[Hint, bool] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""The hints of an untrusted tool: MCP's defaults."""


@dataclass(frozen=True, slots=True)
class User:
    """A user, as authenticated; an anonymous user has an empty id."""

    id: str = ""
    groups: frozenset[str] = frozenset()


class Rule(Record):
    """Conditions that a tool must all meet. In a policy file, a string stands for a rule with that ``id``.

    Attributes:
        id: Pattern of the tool's id or of its agent's: ``files/read_*``, ``git``, ``*/delete*``.
        capability: Id of a capability of the tool, or of a broader one.
        annotations: MCP's hints of the tool, by name.
    """

    id: Name | None = None
    capability: Name | None = None
    annotations: dict[Hint, bool] | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        return {"id": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _not_empty(self) -> Rule:
        if self.id is None and self.capability is None and not self.annotations:
            raise CatalogError('a rule must be a pattern, or an object with "id", "capability" or "annotations"')
        return self

    def __str__(self) -> str:
        """Returns the rule as it is written in a policy file."""
        return str(self.model_dump(exclude_none=True)) if self.capability or self.annotations else repr(self.id)


@dataclass(frozen=True)
class Rules:
    """All rules that apply to one user; ``denies`` override the others."""

    default: bool
    allows: tuple[Rule, ...]
    denies: tuple[Rule, ...]
    trust: tuple[str, ...]

    @cached_property
    def key(self) -> str:
        """Returns a key that is the same for users with the same rules."""
        return repr((self.default, self.allows, self.denies, self.trust))

    def allow(self, tool: Tool) -> bool:
        """Returns whether the tool may be seen and called."""
        if self.deny(tool):
            return False
        return self.default or any(self.fits(rule, tool, claims=False) for rule in self.allows)

    def deny(self, tool: Tool) -> bool:
        """Returns whether a rule forbids the tool, regardless of the default."""
        return any(self.fits(rule, tool, claims=True) for rule in self.denies)

    def trusts(self, agent: str) -> bool:
        """Returns whether the agent's claims are trusted."""
        return any(_pattern(pattern).match(agent) for pattern in self.trust)

    def fits(self, rule: Rule, tool: Tool, *, claims: bool) -> bool:
        """Returns whether a rule matches a tool.

        Args:
            rule: The rule.
            tool: The tool.
            claims: Whether to match broadly, as a ``deny`` rule must: the agent's own claims about capabilities count
                even if it is not trusted, and differences of case, invisible characters and wide letters are ignored.
        """
        trusted = self.trusts(tool.agent)
        if rule.id is not None and not _id_matches(rule.id, tool, loosely=claims):
            return False
        if rule.capability is not None and not ((claims or trusted) and _has_capability(tool, rule.capability)):
            return False
        actual = hints(tool, trusted=trusted)
        return all(actual[name] is value for name, value in (rule.annotations or {}).items())


def hints(tool: Tool, *, trusted: bool) -> dict[Hint, bool]:
    """Returns the effective values of MCP's four hints of a tool.

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
    shipped = list(map(shipped_taxonomy, SHIPPED))
    return any(
        capability == own or any(own in one.by_id and capability in one.ancestors(own) for one in shipped)
        for own in tool.capabilities
    )


def _folded(text: str) -> str:
    return normalized("NFKC", shown(text, most=None)).casefold()


@lru_cache(maxsize=4_096)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


_LONGEST_LIST = 10


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class View:
    """The part of a catalog that one user may see.

    Attributes:
        catalog: The visible tools and skills; none of their dependencies leads to a hidden tool.
        tools: Ids of the visible tools.
        blocked: Ids of tools that are allowed but require a forbidden one; they are hidden too.
    """

    catalog: Catalog
    tools: frozenset[str]
    blocked: frozenset[str]

    def __contains__(self, node: str) -> bool:
        """Returns whether an agent, a tool or a skill is visible."""
        return node in self.tools or node in self.catalog.by_id or node in self.catalog.skills_by_id

    def summary(self, tools: int) -> str:
        """Describes how many of all ``tools`` the policy allows; names those in ``blocked``, but no forbidden tool."""
        allowed = f"the policy allows {len(self.tools) + len(self.blocked):,} of {counted(tools, 'tool')}"
        if not self.blocked:
            return allowed
        names = sorted(self.blocked)
        more = f" and {len(names) - _LONGEST_LIST:,} more" if len(names) > _LONGEST_LIST else ""
        return f"{allowed}; left out because they require one that is not: {', '.join(names[:_LONGEST_LIST])}{more}"


def view_of(catalog: Catalog, allowed: Callable[[Tool], bool]) -> View:
    """Returns the allowed skills of a catalog, and the allowed tools that do not require a forbidden tool.

    Optional dependencies on hidden tools are removed, and so are agents that lose all their tools. A skill is allowed
    if a tool with the same id would be; the hidden tools that it names are removed from it.
    """
    granted = {tool.id for tool in catalog.tools.values() if allowed(tool)}
    # An agent that has no tools, as a graph that takes messages, is allowed as any tool of it would be.
    without_tools = [agent.id for agent in catalog.agents if not agent.tools]
    forbidden = {agent for agent in without_tools if not allowed(Tool(agent=agent, name="*"))}
    skills = [skill for skill in catalog.skills if allowed(as_tool(skill))]
    if len(granted) == len(catalog.tools) and not forbidden and len(skills) == len(catalog.skills):
        return View(catalog, frozenset(granted), frozenset())
    from callsheet.graphs.knowledge_graph import knowledge_graph, requiring, restrict_graph

    blocked = requiring(knowledge_graph(catalog), catalog.tools.keys() - granted) & granted
    visible = frozenset(granted - blocked)
    agents = tuple(_visible_agents(catalog, visible, forbidden))
    visible_skills = tuple(_visible_skills(skills, visible))
    part = restrict_graph(Catalog(agents=agents, skills=visible_skills), catalog)
    return View(part, visible, frozenset(blocked))


def as_tool(skill: Skill) -> Tool:
    """Returns a tool with the owner and the name of a skill; a policy's rules for tools decide on the skill by it."""
    return Tool(agent=skill.owner, name=skill.local_name)


def _visible_agents(catalog: Catalog, visible: frozenset[str], forbidden: Collection[str]) -> Iterator[Agent]:
    """Yields the agents with their visible tools; ``forbidden`` are ids of agents without tools that stay hidden."""
    for agent in catalog.agents:
        tools = tuple(_within(tool, visible) for tool in agent.tools if tool.id in visible)
        has_lost_all = bool(agent.tools) and not tools
        if not has_lost_all and agent.id not in forbidden:
            yield agent.model_copy(update={"tools": tools})


def _visible_skills(skills: Iterable[Skill], visible: frozenset[str]) -> Iterator[Skill]:
    for skill in skills:
        tools = tuple(tool for tool in skill.tools if tool in visible)
        yield skill.model_copy(update={"tools": tools})


def _within(tool: Tool, visible: frozenset[str]) -> Tool:
    """Returns a tool without its dependencies on hidden tools."""
    edges = tuple(edge for edge in tool.depends_on if edge.tool in visible)
    return tool if len(edges) == len(tool.depends_on) else tool.model_copy(update={"depends_on": edges})


_MOST_VIEWS = 32


class Grants(Record):
    """Rules that allow tools and rules that forbid tools; the latter override the former."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


class Group(Grants):
    """Grants for several users: members by id, and users whose authentication names the group."""

    members: tuple[Name, ...] = ()


class Policy(Grants):
    """Determines who may see and call which agents and tools; a ``deny`` anywhere overrides every ``allow``.

    Attributes:
        default: Whether tools that no rule matches are allowed or denied.
        trust: Patterns of agents whose own claims about their tools (MCP's hints, capabilities) may relax checks.
        commands: Patterns of command lines that a catalog may start; None allows any.
        reviewers: Users and groups who may accept and reject in the explorer of a server.
        shared_outcomes: Whether outcomes of calls are counted and used if users are authenticated.
        groups: More rules by group.
        users: More rules by the user's id.
        callsheet_policy: Version of the format.
    """

    model_config = ConfigDict(ignored_types=(cached_property,))

    default: Literal["allow", "deny"]
    trust: tuple[Name, ...] = ()
    commands: tuple[Name, ...] | None = None
    reviewers: tuple[Name, ...] = ()
    shared_outcomes: bool = False
    groups: dict[Name, Group] = Field(default_factory=dict)
    users: dict[Name, Grants] = Field(default_factory=dict)
    callsheet_policy: Literal[1] = 1

    @cached_property
    def _cache(self) -> tuple[threading.Lock, dict[Any, tuple[Catalog, View]]]:
        return threading.Lock(), {}

    @cached_property
    def _rules(self) -> Callable[[User], Rules]:
        return lru_cache(maxsize=_MOST_VIEWS * 32)(self._rules_of)

    def allows(self, tool: Tool, user: User | str | None = None) -> bool:
        """Returns whether a user may see and call a tool; for None, only the rules for everyone apply."""
        return self._rules(_user(user)).allow(tool)

    def denies(self, tool: Tool, user: User | str | None = None) -> bool:
        """Returns whether a rule forbids a tool to a user, regardless of the default."""
        return self._rules(_user(user)).deny(tool)

    def trusts(self, agent: str) -> bool:
        """Returns whether an agent's claims may relax checks, as ``readOnlyHint`` relaxes approval."""
        return self._rules(User()).trusts(agent)

    def reviews(self, user: User) -> bool:
        """Returns whether a user, or one of the user's groups, is a reviewer; an anonymous user is not.

        A name that is both a user's id and a group of the policy means the group.
        """
        groups = {name for name, group in self.groups.items() if user.id in group.members} | user.groups
        return bool(user.id) and not (groups | ({user.id} - self.groups.keys())).isdisjoint(self.reviewers)

    def view(self, catalog: Catalog, user: User | str | None = None) -> View:
        """Returns the part of a catalog that a user may see, cached for each set of rules."""
        rules = self._rules(_user(user))
        lock, views = self._cache
        key = (id(catalog), rules.key)
        known = views.get(key)
        if known:
            return known[1]
        view = view_of(catalog, rules.allow)
        with lock:
            if len(views) >= _MOST_VIEWS:
                views.pop(next(iter(views)))
            views[key] = (catalog, view)
        return view

    def findings(self, *catalogs: Catalog) -> tuple[Finding, ...]:
        """Reports rules that match no tool or skill of these catalogs; a misspelt ``deny`` would forbid nothing."""
        skills = [skill for catalog in catalogs for skill in catalog.skills]
        tools = [tool for catalog in catalogs for tool in catalog.tools.values()]
        tools += map(as_tool, skills)
        everyone = self._rules(User())
        sections: dict[str, Grants] = {"": self}
        sections |= {f"group {name!r}, ": group for name, group in self.groups.items()}
        sections |= {f"user {name!r}, ": grants for name, grants in self.users.items()}
        return tuple(
            Finding(
                Severity.WARNING,
                "policy-rule-without-effect",
                f"the policy's {where}{effect} has the rule {rule}, which matches nothing in the catalog: "
                "correct or remove it",
            )
            for where, grants in sections.items()
            for effect in ("allow", "deny")
            for rule in getattr(grants, effect)
            if not any(everyone.fits(rule, tool, claims=True) for tool in tools)
        )

    def _rules_of(self, user: User) -> Rules:
        groups = [each for name, each in self.groups.items() if user.id in each.members or name in user.groups]
        own = [self.users[user.id]] if user.id in self.users else []
        sections: list[Grants] = [self, *groups, *own]
        return Rules(
            default=self.default == "allow",
            allows=tuple(rule for grants in sections for rule in grants.allow),
            denies=tuple(rule for grants in sections for rule in grants.deny),
            trust=self.trust,
        )


def counts_outcomes(policy: Policy | None, user: User) -> bool:
    """Returns whether the outcomes of this user's calls are counted, and those of all users are used."""
    return not user.id or (policy is not None and policy.shared_outcomes)


def read_policy(path: str | Path) -> Policy:
    """Reads a policy from a JSON file; raises a ``SettingsError`` if it cannot be read or is not a policy."""
    try:
        content: Any = json.loads(read_regular(Path(path).expanduser()))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"the policy {path} cannot be read: {error}") from error
    if not isinstance(content, Mapping) or "default" not in content:
        raise SettingsError(f'the policy {path} must be an object with "default": "allow" or "deny"')
    try:
        return Policy(**content)
    except (CatalogError, TypeError) as error:
        raise SettingsError(f"the policy {path}: {error}") from error


def policy_of(policy: Policy | str | Path | None) -> Policy | None:
    """Returns a policy, or reads the policy file; None stands for the file in ``CALLSHEET_POLICY``, if set."""
    if isinstance(policy, Policy):
        return policy
    path = policy or os.environ.get("CALLSHEET_POLICY")
    return read_policy(path) if path else None


def _user(user: User | str | None) -> User:
    return user if isinstance(user, User) else User(user or "")
