"""Which capabilities each tool of a catalog has, how sure that is, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from callsheet.graphs import Catalog, Taxonomy, Tool
from callsheet.retrievers.capabilities.capability_index import POSSIBLE, CapabilityIndex, Confidences

AssignedBy = Literal["declared", "text", "model"]
LIKELY, MOST = 0.5, 3


@dataclass(frozen=True, slots=True)
class Assigned:
    """A capability of a tool.

    Attributes:
        capability: Its id.
        confidence: How sure it is, 0 to 1.
        by: Who says so: the tool's author, its text, or a chat model.
    """

    capability: str
    confidence: float
    by: AssignedBy


@dataclass(frozen=True)
class Assignments:
    """The capabilities of all tools of a catalog.

    Attributes:
        taxonomy: What the ids mean.
        of: Tool id -> its capabilities, the surest first; empty where none fits.
        unknown: Tool id -> ids that its author or a model gave and the taxonomy does not hold.
    """

    taxonomy: Taxonomy
    of: Mapping[str, tuple[Assigned, ...]]
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def coverage(self) -> float:
        """Share of the tools that have a capability; 1 where there are no tools."""
        return sum(map(bool, self.of.values())) / len(self.of) if self.of else 1.0

    @cached_property
    def tools_of(self) -> Mapping[str, tuple[str, ...]]:
        """Capability id -> ids of the tools that have it or a narrower one, in the order of the taxonomy."""
        found: dict[str, dict[str, None]] = {name: {} for name in self.taxonomy.by_id}
        for tool, entries in self.of.items():
            for entry in entries:
                for name in (entry.capability, *self.taxonomy.ancestors(entry.capability)):
                    found[name][tool] = None
        return {name: tuple(tools) for name, tools in found.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``callsheet capabilities --json`` prints them."""
        return {
            "capabilities": [
                {"id": name, "name": entry.name, "broader": entry.broader, "tools": list(self.tools_of[name])}
                for name, entry in self.taxonomy.by_id.items()
            ],
            "coverage": self.coverage,
            "tools": [
                {
                    "id": tool,
                    "capabilities": [{"id": a.capability, "confidence": a.confidence, "by": a.by} for a in entries],
                    "unknown": list(self.unknown.get(tool, ())),
                }
                for tool, entries in self.of.items()
            ],
        }


def assign_capabilities(catalog: Catalog, index: CapabilityIndex) -> Assignments:
    """The capabilities of every tool, without a language model.

    What a tool's author declares holds, and nothing else is added to it. Another tool gets its likely capabilities
    (at least .5 sure, at most three), or the best one if that is possible at all (at least .1), or none.

    Args:
        catalog: Whose tools.
        index: Knows how sure it is of each; made for this catalog.
    """
    sure, rows = index.of_tools, index.rows
    found = {
        tool.id: declared(tool, index.taxonomy) if tool.capabilities else _chosen(sure[rows[tool.id]], index.leaves)
        for tool in catalog.tools.values()
    }
    return Assignments(index.taxonomy, found, undeclared(catalog, index.taxonomy))


def declared(tool: Tool, taxonomy: Taxonomy) -> tuple[Assigned, ...]:
    """What a tool's author declares, as far as the taxonomy holds it."""
    known = dict.fromkeys(name for name in tool.capabilities if name in taxonomy.by_id)
    return tuple(Assigned(name, 1.0, "declared") for name in known)


def undeclared(catalog: Catalog, taxonomy: Taxonomy) -> dict[str, tuple[str, ...]]:
    """Tool id -> ids that its author gave and the taxonomy does not hold."""
    said = {
        tool.id: tuple(name for name in tool.capabilities if name not in taxonomy.by_id)
        for tool in catalog.tools.values()
    }
    return {tool: names for tool, names in said.items() if names}


def with_capabilities(catalog: Catalog, assignments: Assignments, *, least: float = LIKELY) -> Catalog:
    """The same catalog with these capabilities as if its authors had declared them, those that are as sure as that."""
    agents = []
    for agent in catalog.agents:
        tools = (_with(tool, assignments.of.get(tool.id, ()), least) for tool in agent.tools)
        agents.append(agent.model_copy(update={"tools": tuple(tools)}))
    return Catalog(agents=tuple(agents))


def _with(tool: Tool, entries: tuple[Assigned, ...], least: float) -> Tool:
    sure = tuple(entry.capability for entry in entries if entry.confidence >= least)
    return tool.model_copy(update={"capabilities": sure}) if sure else tool


def _chosen(sure: Confidences, leaves: tuple[str, ...]) -> tuple[Assigned, ...]:
    best = np.argsort(-sure, kind="stable")[:MOST]
    likely = [place for place in best.tolist() if sure[place] >= LIKELY]
    possible = [place for place in best[:1].tolist() if sure[place] >= POSSIBLE]
    return tuple(Assigned(leaves[place], float(sure[place]), "text") for place in likely or possible)
