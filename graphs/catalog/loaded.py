"""What reading catalogs gives: agents, how to reach them, what was left out, and who may see what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.catalog.model import Agent, Catalog
from callsheet.graphs.dependencies.proposals import DependencyFile
from callsheet.graphs.trust.pins import Change
from callsheet.graphs.trust.policy import Policy


class Live(Protocol):
    """A server that may say something else the next time."""

    def heard(self, answer: Any) -> Part | None:
        """Its agent by a new answer, as far as that is accepted; None if it says the same as before."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """What one source gives; dependencies may still name tools by their bare names.

    Attributes:
        agents: The agents found.
        connections: Agent id -> what its tools are called through: a ``ServerConfig``, or live objects.
        problems: What was left out, and why.
        digests: Id of a tool of a live server -> SHA-256 of its definition as the server sent it.
        changes: What servers say otherwise than was accepted; tools that are changed or new are left out.
        dependencies: Files of dependencies that belong beside the agents, each with its name.
        live: Agent id -> how its tools follow what its server says.
        down: Agents whose servers did not answer, with the tools that they were last known to have: id -> since when.
        remembered: Agents whose servers were not asked, because they answered lately: id -> when, in UTC, ISO 8601.
    """

    agents: tuple[Agent, ...] = ()
    connections: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    dependencies: tuple[tuple[str, DependencyFile], ...] = ()
    live: Mapping[str, Live] = field(default_factory=dict)
    down: Mapping[str, str] = field(default_factory=dict)
    remembered: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A catalog with what is needed to call its tools.

    Attributes:
        catalog: All agents of all sources, validated as a whole.
        connections: As in ``Part``.
        problems: As in ``Part``.
        label: What it was read from, one line a source; empty for a catalog made in memory.
        digests: As in ``Part``.
        changes: As in ``Part``.
        policy: Who may see and call which tools; None: everyone, everything.
        live: As in ``Part``.
        down: As in ``Part``.
        remembered: As in ``Part``.
    """

    catalog: Catalog
    connections: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    label: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    policy: Policy | None = None
    live: Mapping[str, Live] = field(default_factory=dict)
    down: Mapping[str, str] = field(default_factory=dict)
    remembered: Mapping[str, str] = field(default_factory=dict)

    @property
    def part(self) -> Part:
        """The same as a part of a larger catalog."""
        return Part(
            self.catalog.agents,
            self.connections,
            self.problems,
            self.digests,
            self.changes,
            live=self.live,
            down=self.down,
            remembered=self.remembered,
        )


def joined(parts: list[Part]) -> Part:
    """Several parts as one; of two connections of one agent the last counts."""
    return Part(
        agents=tuple(agent for part in parts for agent in part.agents),
        connections={name: way for part in parts for name, way in part.connections.items()},
        problems=tuple(problem for part in parts for problem in part.problems),
        digests={tool: digest for part in parts for tool, digest in part.digests.items()},
        changes=tuple(change for part in parts for change in part.changes),
        dependencies=tuple(file for part in parts for file in part.dependencies),
        live={name: live for part in parts for name, live in part.live.items()},
        down={name: since for part in parts for name, since in part.down.items()},
        remembered={name: when for part in parts for name, when in part.remembered.items()},
    )
