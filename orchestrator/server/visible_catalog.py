"""The part of a catalog that one user may see, with links to its nodes whose texts are safe to display."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from callsheet.agents import ToolRegistry
from callsheet.graphs import (
    Catalog,
    CatalogError,
    Change,
    Finding,
    KnowledgeGraph,
    Loaded,
    Policy,
    Problem,
    User,
    escaped,
    knowledge_graph,
)
from callsheet.graphs.catalog.formats.manifests import tool_from_entry
from callsheet.graphs.lint import lint
from callsheet.graphs.text.messages import counted
from callsheet.orchestrator.run.process.process_state import Served
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.capabilities import Assignments

Json = dict[str, Any]
NodeName = Literal["agent", "tool", "skill", "capability"]
_MOST_KNOWN = 8
_LONGEST = 4_096
_LONGEST_LINE = 240
_WELL = 0.6
_MAYBE = 0.3


def page_text(text: str, *, most: int = _LONGEST) -> str:
    """Returns an untrusted text for a person: hidden characters are written as codes, and its length is limited."""
    if len(text) > most:
        return f"{escaped(text[:most])} … ({counted(len(text) - most, 'more character')})"
    return escaped(text)


def shown_line(text: str) -> str:
    """Returns the beginning of an untrusted text, on one line."""
    line = " ".join(escaped(text[: _LONGEST_LINE * 2]).split())
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


def fit(score: float) -> str:
    """Describes a score in words: how well something fits a text."""
    return "fits well" if score >= _WELL else "may fit" if score >= _MAYBE else "is near, but hardly fits"


class Knowledge:
    """Derived data about what some users may see, computed once; the first access may take seconds."""

    def __init__(self, retriever: AgentGraphRetriever, problems: Sequence[Problem]) -> None:
        self.catalog = retriever.catalog
        self._retriever = retriever
        self._problems = problems
        self._lock = threading.Lock()

    @property
    def graph(self) -> KnowledgeGraph:
        """Returns the knowledge graph of what these users may see."""
        return knowledge_graph(self.catalog)

    @property
    def capabilities(self) -> Assignments:
        """Returns the capabilities of each tool."""
        with self._lock:
            return self._capabilities

    @property
    def findings(self) -> Mapping[str, Sequence[Finding]]:
        """Returns the findings of ``callsheet check`` by the id of the tool or agent."""
        with self._lock:
            return self._findings

    @cached_property
    def _capabilities(self) -> Assignments:
        return self._retriever.capabilities()

    @cached_property
    def _findings(self) -> Mapping[str, Sequence[Finding]]:
        problems = tuple(problem for problem in self._problems if problem.kind != "quarantined")
        by_node: dict[str, list[Finding]] = {}
        for finding in lint(Loaded(self.catalog, problems=problems)):
            by_node.setdefault(finding.tool or finding.agent, []).append(finding)
        return by_node


@dataclass(frozen=True, slots=True)
class VisibleCatalog:
    """What one user may see; users who may see the same share ``knowledge``. ``read`` is as in ``Served``."""

    user: User
    retriever: AgentGraphRetriever
    knowledge: Knowledge
    loaded: Loaded
    registry: ToolRegistry
    read: Callable[..., Loaded] | None = None

    @property
    def policy(self) -> Policy | None:
        """Returns the policy; None if every user may see everything."""
        return self.retriever.policy

    @property
    def catalog(self) -> Catalog:
        """Returns the visible part of the catalog."""
        return self.knowledge.catalog

    @property
    def whole(self) -> bool:
        """Returns whether everything is visible, including tools in quarantine."""
        everything = self.catalog is self.retriever.selector.catalog
        return everything and all(self._may_see_change(change) for change in self.loaded.changes if change.quarantines)

    @property
    def reviewable(self) -> list[Change]:
        """Returns the visible changes of all servers; changes of a whole server only if everything is visible."""
        whole = self.whole
        return [one for one in self.loaded.changes if self._may_see_change(one) and (one.tool or whole)]

    def may_see(self, node: str) -> bool:
        """Returns whether an agent or tool may be named; with a policy, only if it is in the visible catalog."""
        return self.policy is None or node in self.catalog.tools or node in self.catalog.by_id

    def link(self, node: str) -> Json:
        """Returns a link to an agent, a tool or a skill: its id, label, kind, and the first line of its description."""
        catalog = self.catalog
        kind: NodeName = "tool" if node in catalog.tools else "skill" if node in catalog.skills_by_id else "agent"
        known = catalog.tools.get(node) or catalog.skills_by_id.get(node) or catalog.by_id.get(node)
        about = shown_line(known.description) if known else ""
        return {"id": node, "label": shown_line(node), "kind": kind, "about": about}

    def _may_see_change(self, change: Change) -> bool:
        """Returns a quarantined tool is in no catalog, so the policy decides on its old and its new definition."""
        if self.policy is None or not change.tool:
            return True
        try:
            sides = [tool_from_entry(change.agent, side) for side in (change.before, change.after) if side is not None]
        except CatalogError:
            return False
        return bool(sides) and all(self.policy.allows(tool, self.user) for tool in sides)


class Site:
    """A served catalog with everything that the explorer needs."""

    def __init__(self, served: Callable[[], Served]) -> None:
        self._served = served
        self._lock = threading.Lock()
        self._known = dict[int, Knowledge]()

    def visible_to(self, user: User) -> VisibleCatalog:
        """Returns what a user may see; slow on first use, so not for an event loop.

        Raises:
            CallsheetError: The catalog, its index or its policy cannot be read.
        """
        served = self._served()
        retriever = served.retriever.within(user)
        loaded = served.registry.loaded
        knowledge = self._knowledge(retriever, loaded)
        return VisibleCatalog(user, retriever, knowledge, loaded, served.registry, served.read)

    def follow(self, loaded: Loaded) -> None:
        """Replaces the catalog by a reloaded one, for calls and for searches; slow, so not for an event loop."""
        served = self._served()
        served.registry.follow(loaded)
        served.retriever.follow(loaded)

    def _knowledge(self, retriever: AgentGraphRetriever, loaded: Loaded) -> Knowledge:
        key = id(retriever.catalog)
        with self._lock:
            if key not in self._known:
                if len(self._known) == _MOST_KNOWN:
                    del self._known[next(iter(self._known))]
                whole = retriever.catalog is retriever.selector.catalog
                self._known[key] = Knowledge(retriever, loaded.problems if whole else ())
            return self._known[key]
