"""Agents, tools, parameters, dependencies and skills: frozen records, validated on construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from callsheet.graphs.errors import CatalogError, UnknownNameError, lookup, near_names
from callsheet.graphs.text.messages import counted

_MOST_NAMED = 10
"""Tools of an agent that an error names."""

Name = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]


class Record(BaseModel):
    """The base class of frozen models for data from outside, which are validated on construction.

    A field that is missing, unknown or of the wrong type raises a ``CatalogError``, whose message names each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise CatalogError(f"{type(self).__name__.strip('_')}: {_message_of(error)}") from error


def _message_of(error: ValidationError, most: int = 3) -> str:
    """Returns the first errors of a validation in one line, each with the place of its field."""
    details = error.errors()
    messages = list[str]()
    for detail in details[:most]:
        cause = detail.get("ctx", {}).get("error")
        where = ".".join(map(str, detail["loc"]))
        message = str(cause) if isinstance(cause, CatalogError) else detail["msg"]
        messages.append(": ".join(filter(None, (where, message))))
    if len(details) > most:
        messages.append(f"and {len(details) - most} more")
    return "; ".join(messages)


SKILLS = "skills"
"""The first part of the id of every skill of a folder."""
SKILL = "skill:"
"""The beginning of the name of every skill of a server, among the names of the server's tools."""


class DependencyKind(StrEnum):
    """How one tool depends on another (Graph RAG-Tool Fusion, section 3.1)."""

    TOOL_DIRECTLY = "tool_directly"
    TOOL_INDIRECTLY = "tool_indirectly"
    PARAMETER_DIRECTLY = "parameter_directly"
    PARAMETER_INDIRECTLY = "parameter_indirectly"

    @property
    def direct(self) -> bool:
        """Returns whether the tool requires the other one."""
        return self in (DependencyKind.TOOL_DIRECTLY, DependencyKind.PARAMETER_DIRECTLY)


class Provenance(StrEnum):
    """The origin of a dependency, which determines how far it is trusted."""

    DECLARED = "declared"
    """The author of the catalog or of the server wrote it."""
    REVIEWED = "reviewed"
    """A program proposed it; a person, or a model that a person asked to review, accepted it."""
    PROPOSED = "proposed"
    """A program proposed it; no person has reviewed it."""
    OBSERVED = "observed"
    """In a run, a call took an argument from the other tool's result."""


class Dependency(Record):
    """An edge from a tool to a tool that it needs.

    Attributes:
        tool: Id of the needed tool, ``agent/tool``.
        parameter: The parameter whose value the needed tool returns, if the edge concerns one.
        reason: Reason given by the author, or evidence for a proposal.
        count: How often the dependency was observed in runs.
    """

    tool: Name
    kind: DependencyKind
    parameter: str | None = None
    reason: str = ""
    provenance: Provenance = Provenance.DECLARED
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    count: Annotated[int, Field(ge=0)] = 0

    @property
    def holds(self) -> bool:
        """Returns whether a person declared or accepted the dependency."""
        return self.provenance in (Provenance.DECLARED, Provenance.REVIEWED)

    @property
    def required(self) -> bool:
        """Returns whether the tool cannot work without the other: a direct dependency that a person confirmed."""
        return self.kind.direct and self.holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument of a tool, or one field of its result, from its JSON Schema.

    Attributes:
        type: JSON Schema type; several are joined by ``|``; ``any`` if the schema has none.
        enum: Allowed values; empty if any value is allowed.
        format: JSON Schema format, such as ``date-time``.
    """

    name: str
    type: str = "any"
    description: str = ""
    required: bool = False
    enum: tuple[Any, ...] = ()
    format: str = ""
    default: Any = None


class Tool(Record):
    """A function of one agent that can be called; it is identified by agent and name, never by the name alone.

    Attributes:
        agent: Id of the owner.
        description: What the tool does, according to its author.
        input_schema: JSON Schema of the arguments.
        output_schema: JSON Schema of the structured result, if declared.
        annotations: MCP's hints (``readOnlyHint`` ...): claims of the author, not facts.
        core: Whether many tools depend on it (Graph RAG-Tool Fusion, section 3.1).
        capabilities: Ids of its capabilities in a taxonomy, declared by its author or a reviewer.
        always: Whether it comes with every other tool of its agent, as the user has said.
    """

    agent: Name
    name: Name
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = Field(default_factory=dict)
    core: bool = False
    depends_on: tuple[Dependency, ...] = ()
    capabilities: tuple[Name, ...] = ()
    always: bool = False

    @property
    def id(self) -> str:
        """Returns the id, ``agent/name``."""
        return f"{self.agent}/{self.name}"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Returns the arguments that the input schema declares, in order."""
        return parameters_of(self.input_schema)

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        """Returns the fields that the output schema declares, in order; empty without a schema."""
        return parameters_of(self.output_schema or {})


class Agent(Record):
    """An executor of steps, for example an MCP server, a set of LangChain tools or a LangGraph app.

    Attributes:
        id: Key, unique in the catalog.
        name: Display name; may be empty.
        instructions: Instructions for a model that uses the agent.
        system: Id of the API of which the agent is a part, so that they share identifiers; empty if it is no part.
    """

    id: Name
    name: str = ""
    description: str = ""
    instructions: str = ""
    category: str = ""
    system: str = ""
    tools: tuple[Tool, ...] = ()

    @property
    def system_key(self) -> str:
        """Returns a key that agents of the same system share; no id of another agent is equal to it."""
        return repr((self.system, "" if self.system else self.id))

    @model_validator(mode="after")
    def _own_tools(self) -> Self:
        seen: set[str] = set()
        for tool in self.tools:
            if tool.agent != self.id:
                raise CatalogError(
                    f"agent {self.id!r} holds tool {tool.name!r} of agent {tool.agent!r}: give the tool its owner's id"
                )
            if tool.name in seen:
                raise CatalogError(f"agent {self.id!r} has two tools named {tool.name!r}: rename or remove one")
            seen.add(tool.name)
        return self


class Skill(Record):
    """Instructions for one kind of task, in the form of Agent Skills (a folder with a ``SKILL.md``).

    Attributes:
        name: The name; of a skill of a server, its path there, such as ``refunds`` or ``billing/refunds``.
        text: The instructions, in Markdown; empty for a skill of a server, which is read when it is needed.
        tools: Ids of the tools that it names.
        agent: Id of the agent whose server serves the skill; empty for a skill of a folder.
    """

    name: Name
    description: str = ""
    text: str = ""
    tools: tuple[Name, ...] = ()
    agent: str = ""

    @property
    def owner(self) -> str:
        """Returns the first part of the id: ``skills``, or the id of the agent."""
        return self.agent or SKILLS

    @property
    def local_name(self) -> str:
        """Returns the name after the owner in the id; no tool of an agent has the same."""
        return f"{SKILL}{self.name}" if self.agent else self.name

    @property
    def id(self) -> str:
        """Returns the id, ``skills/name``, or ``agent/skill:name`` for a skill of a server."""
        return f"{self.owner}/{self.local_name}"

    @property
    def label(self) -> str:
        """Returns the name that a model sees: the name, or the id, which has the origin, for a skill of a server."""
        return self.id if self.agent else self.name


class Catalog(Record):
    """All agents with their tools and dependencies, and all skills, validated together.

    Raises:
        CatalogError: Two nodes share an id, or a dependency or a skill names an unknown tool.
    """

    agents: tuple[Agent, ...] = ()
    skills: tuple[Skill, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        self._check_ids()
        for skill in self.skills:
            for name in skill.tools:
                if name not in self.tools:
                    raise CatalogError(f"skill {skill.name!r} names {name!r}, which is not in the catalog")
        for tool in self.tools.values():
            for edge in tool.depends_on:
                if edge.tool not in self.tools:
                    raise CatalogError(
                        f"tool {tool.id!r} depends on {edge.tool!r}, which is not in the catalog"
                        f"{near_names(edge.tool, self.tools)}: correct the id or remove the dependency"
                    )
        return self

    def _check_ids(self) -> None:
        """Refuses an id that two agents, tools or skills have: in the graph, they would be one node."""
        ids = list[str]()
        for agent in self.agents:
            ids.append(agent.id)
            ids.extend(tool.id for tool in agent.tools)
        ids.extend(skill.id for skill in self.skills)
        known = set[str]()
        for node in ids:
            if node in known:
                raise CatalogError(f"two nodes of the catalog have the id {node!r}: rename one of them")
            known.add(node)

    @cached_property
    def derived(self) -> dict[str, Any]:
        """Caches what is computed from the catalog, such as its knowledge graph."""
        return {}

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """Maps each id to its tool, in the order of the agents."""
        return {tool.id: tool for agent in self.agents for tool in agent.tools}

    @property
    def sizes(self) -> str:
        """Returns the numbers of agents, tools and skills as text, for example ``7 agents, 58 tools``."""
        counts = [counted(len(self.agents), "agent"), counted(len(self.tools), "tool")]
        if self.skills:
            counts.append(counted(len(self.skills), "skill"))
        return ", ".join(counts)

    @cached_property
    def skills_by_id(self) -> Mapping[str, Skill]:
        """Maps each id to its skill."""
        return {skill.id: skill for skill in self.skills}

    @cached_property
    def by_id(self) -> Mapping[str, Agent]:
        """Maps each id to its agent."""
        return {agent.id: agent for agent in self.agents}

    def agent(self, agent_id: str) -> Agent:
        """Returns the agent of this id, or raises ``UnknownNameError``, which suggests similar ids."""
        return lookup(self.by_id, agent_id, "agent", "catalog")

    def tool(self, tool_id: str) -> Tool:
        """Returns the tool of this id, or raises ``UnknownNameError``, which suggests similar ids."""
        if tool_id in self.tools:
            return self.tools[tool_id]
        if tool_id in self.by_id:
            ids = [tool.id for tool in self.by_id[tool_id].tools]
            more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
            raise UnknownNameError(f"{tool_id!r} is an agent; its tools are {', '.join(ids[:_MOST_NAMED])}{more}")
        near = near_names(tool_id, self.tools) or near_names(tool_id, self.by_id)
        raise UnknownNameError(f"no tool {tool_id!r} in the catalog{near}")


def parameters_of(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Returns the properties of an object schema, in order; properties without a valid schema are skipped."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ()
    required = schema.get("required")
    required_names = set(map(str, required)) if isinstance(required, list) else set[str]()
    parameters = []
    for name, spec in properties.items():
        if not isinstance(spec, dict):
            continue
        enum = spec.get("enum")
        parameter = Parameter(
            name=name,
            type=_type_of(spec),
            description=str(spec.get("description") or ""),
            required=name in required_names,
            enum=tuple(enum) if isinstance(enum, list) else (),
            format=str(spec.get("format") or ""),
            default=spec.get("default"),
        )
        parameters.append(parameter)
    return tuple(parameters)


def _type_of(spec: Mapping[str, Any]) -> str:
    """Returns the type of a schema; several types, and those of its alternatives, are joined by ``|``."""
    declared = spec.get("type")
    if isinstance(declared, str):
        return declared
    if isinstance(declared, list):
        return "|".join(map(str, declared))
    alternatives = spec.get("anyOf") or spec.get("oneOf") or []
    types: dict[str, None] = {}  # in order, without duplicates
    if isinstance(alternatives, list):
        types.update((_type_of(part), None) for part in alternatives if isinstance(part, dict))
    return "|".join(types) or "any"
