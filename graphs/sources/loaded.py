"""Catalog sources, and the result of loading them: agents, their connections, problems, and the policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from callsheet.graphs.catalog.formats.manifests import Problem
from callsheet.graphs.catalog.formats.served_skills import ServedSkill
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.labels import catalog_key
from callsheet.graphs.catalog.model import Agent, Catalog, Skill, Tool
from callsheet.graphs.dependencies.dependency_files import Proposal
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.storage import state_folder
from callsheet.graphs.trust.pins import Change, digest, server_identity
from callsheet.graphs.trust.policy import Policy


@dataclass(frozen=True, kw_only=True)
class _Details:
    """What is known about agents beyond the agents themselves.

    Attributes:
        connections: Agent id -> connection for its calls: a ``ServerConfig``, or objects of this process.
        digests: Agent id -> tool name -> SHA-256 of its definition as the server sent it; none for agents in memory.
        changes: Differences from the accepted definitions; changed and new tools are left out.
        live: Agent id -> the object that updates its tools after a new listing (``LiveServer`` of ``agents``).
        down: Agents whose servers did not answer, with their last known tools: id -> time of the last answer.
        rejected: Source, target and parameter of each dependency that a person rejected.
        dependency_files: Paths of the files of dependencies; if none was named, that of ``decisions_file``.
        resources: Agent id -> an agent whose tools are the server's resources, templates and prompts.
        remembered: Agents whose servers answered recently and were not listed again: id -> time, UTC, ISO 8601.
        places: Agent id -> when its server was first pinned (``ServerPin``); other agents have none.
        served: Agent id -> id of a skill of its server -> the accepted entry, with the digests of the skill's files.
        unresolved: Id of a skill -> the names of tools that it allows and that no agent has; another catalog may.
    """

    connections: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    digests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    live: Mapping[str, Any] = field(default_factory=dict)
    down: Mapping[str, str] = field(default_factory=dict)
    rejected: tuple[tuple[str, str, str | None], ...] = ()
    dependency_files: tuple[str, ...] = ()
    resources: Mapping[str, Agent] = field(default_factory=dict)
    remembered: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)
    served: Mapping[str, Mapping[str, ServedSkill]] = field(default_factory=dict)
    unresolved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def details(self) -> dict[str, Any]:
        """The fields of this class by name."""
        return {item.name: getattr(self, item.name) for item in fields(_Details)}


@dataclass(frozen=True, kw_only=True)
class SourceCatalog(_Details):
    """The content of one source; names of tools may not be resolved yet, and ``dependencies`` are files by name."""

    agents: tuple[Agent, ...] = field(default=(), kw_only=False)
    skills: tuple[Skill, ...] = ()
    dependencies: tuple[tuple[str, tuple[Proposal, ...]], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Loaded(_Details):
    """A loaded catalog with everything that is needed to call its tools.

    Attributes:
        label: Paths or names of the sources, one per line; empty for a catalog made in memory.
        policy: Who may see and call which tools; None: everyone, everything.
    """

    catalog: Catalog = field(kw_only=False)
    label: str = ""
    policy: Policy | None = None

    def digest(self, tool: Tool) -> str | None:
        """Returns the SHA-256 of a tool's accepted definition; None if the tool has no live server."""
        return self.digests.get(tool.agent, {}).get(tool.name)

    def pin(self, tool: Tool) -> str:
        """Returns the SHA-256 of what a person approves: the accepted definition, and how the server is reached."""
        connection = self.connections.get(tool.agent)
        reached = server_identity(connection) if isinstance(connection, ServerConfig) else ""
        # Whether it always comes is the user's choice, and nothing that a call does.
        return digest([self.digest(tool) or tool.model_dump(mode="json", exclude={"always"}), reached])

    def trusts(self, agent_id: str) -> bool:
        """Returns whether the claims of an agent about its tools are trusted, by its entry or by the policy."""
        connection = self.connections.get(agent_id)
        by_entry = isinstance(connection, ServerConfig) and connection.callsheet.trusted
        return by_entry or (self.policy is not None and self.policy.trusts(agent_id))

    @property
    def trusted(self) -> frozenset[str]:
        """Returns the ids of all trusted agents.

        Agents of this process are trusted too, because they are part of the user's own program.
        """
        own = {agent for agent, connection in self.connections.items() if not isinstance(connection, ServerConfig)}
        return frozenset(agent.id for agent in self.catalog.agents if agent.id in own or self.trusts(agent.id))

    @property
    def of_resources(self) -> Loaded:
        """Returns the resources, templates and prompts of the same servers as a catalog, under the same policy."""
        return Loaded(
            Catalog(agents=tuple(self.resources.values())),
            label=self.label,
            policy=self.policy,
            connections=self.connections,
            digests=self.digests,
            changes=self.changes,
        )

    @property
    def part(self) -> SourceCatalog:
        """Returns this catalog in the form of a source, to be joined with others."""
        return SourceCatalog(self.catalog.agents, skills=self.catalog.skills, **self.details)


def join_parts(parts: Sequence[SourceCatalog]) -> SourceCatalog:
    """Joins several parts to one; if mappings have the same key, the last value counts."""
    whole: dict[str, Any] = {}
    empty = SourceCatalog()
    for item in fields(SourceCatalog):
        values = [getattr(part, item.name) for part in parts]
        # Each field is a tuple or a mapping.
        if isinstance(getattr(empty, item.name), tuple):
            whole[item.name] = tuple(chain(*values))
        else:
            merged: dict[Any, Any] = {}
            for value in values:
                merged.update(value)
            whole[item.name] = merged
    return SourceCatalog(**whole)


def check_unique(parts: Iterable[tuple[str, SourceCatalog]]) -> None:
    """Raises a ``CatalogError`` if two agents or skills have the same id; ``parts`` are pairs of place and content."""
    first: dict[str, str] = {}
    for where, part in parts:
        nodes: tuple[Agent | Skill, ...] = (*part.agents, *part.skills)
        for node in nodes:
            if node.id in first:
                raise CatalogError(f"{node.id!r} is in {first[node.id]} and again in {where}: rename or leave out one")
            first[node.id] = where


def rejected_in(whole: SourceCatalog) -> Iterator[tuple[str, str, str | None]]:
    """Yields source, target and parameter of each dependency that a file of dependencies rejects."""
    for _, edges in whole.dependencies:
        for edge in edges:
            if edge.accept is False:
                yield edge.key


Named = str | Path | Catalog | Loaded | SourceCatalog
"""A source with a path, or a catalog that is already loaded."""
CatalogSource: TypeAlias = object
"""A catalog of any kind, or a list of several.

It is ``Named``, or it is made of objects of this process: a dict of objects by agent id, a list, or a single object. An
object is a LangChain tool or toolkit, a function, a compiled LangGraph app, another runnable, or an ``A2AAgent``.

Either ``Named``, or agents of this process: objects by agent id, a list of them, or one. An object is a LangChain tool
or toolkit, a function, a compiled LangGraph app, another runnable, or an ``A2AAgent``.
"""


def sources_of(*arguments: CatalogSource) -> tuple[CatalogSource, ...]:
    """Returns the arguments as single sources.

    A list or tuple that contains a path or a catalog is several sources; its other items together are one more source.
    Any other list is one source of tools, or of agents with names.
    """
    sources: list[CatalogSource] = []
    for argument in arguments:
        if not isinstance(argument, list | tuple):
            sources.append(argument)
            continue
        sources += [item for item in argument if isinstance(item, Named)]
        objects = [item for item in argument if not isinstance(item, Named)]
        if objects:
            sources.append(objects)
    return tuple(sources)


def label_of(source: CatalogSource) -> str:
    """Returns the path or name of a source; empty for an object in memory."""
    match source:
        case Loaded():
            return source.label
        case str() | Path():
            return str(Path(source).resolve()) if Path(source).exists() else str(source)
        case _:
            return ""


def decisions_file(label: str) -> Path:
    """Returns the file for decisions about the dependencies of a catalog whose user names no file for them."""
    return state_folder() / "dependencies" / f"{catalog_key(label)}.json"
