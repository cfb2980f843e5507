"""Agents, tools, parameters and dependencies: what exists, validated once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from callsheet.graphs.catalog.errors import CatalogError, UnknownNameError

_ANY, _LONGEST_HINT = "any", 200
Name = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]


class DependencyKind(StrEnum):
    """How one tool depends on another (Graph RAG-Tool Fusion, section 3.1)."""

    TOOL_DIRECTLY = "tool_directly"
    TOOL_INDIRECTLY = "tool_indirectly"
    PARAMETER_DIRECTLY = "parameter_directly"
    PARAMETER_INDIRECTLY = "parameter_indirectly"

    @property
    def direct(self) -> bool:
        """Whether the tool cannot do without the other one."""
        return self in (DependencyKind.TOOL_DIRECTLY, DependencyKind.PARAMETER_DIRECTLY)


class Provenance(StrEnum):
    """Where a dependency comes from, and so how far it may be trusted."""

    DECLARED = "declared"
    """The author of the catalog or of the server wrote it."""
    REVIEWED = "reviewed"
    """A program proposed it and a person accepted it."""
    PROPOSED = "proposed"
    """A program proposed it; nobody has looked at it yet."""
    OBSERVED = "observed"
    """A call took an argument from the other tool's result while running."""


class Record(BaseModel):
    """A frozen value that comes from outside and is checked when it is made.

    Raises:
        CatalogError: A field is missing, unknown or of the wrong type; the message names each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise CatalogError(f"{type(self).__name__}: {_in_words(error)}") from error


class Dependency(Record):
    """An edge from the tool that holds it to the tool that it needs.

    Attributes:
        tool: Id of the needed tool, ``agent/tool``.
        kind: One of the four kinds.
        parameter: The parameter that the needed tool gives a value for, if the edge is about one.
        reason: Why, in the author's words, or the evidence of who proposed it.
        provenance: Who says so.
        confidence: How sure that is, 0 to 1.
        count: How often it was seen while running.
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
        """Whether a person stands for it; what is only proposed or observed never makes a tool required."""
        return self.provenance in (Provenance.DECLARED, Provenance.REVIEWED)


class Parameter(Record):
    """One argument of a tool, or one field of its result, as its JSON Schema says.

    Attributes:
        name: The property's name.
        type: JSON Schema's type; several are joined by ``|``; ``any`` where none is given.
        description: The author's words.
        required: Whether a call must give it.
        enum: The closed set of values, if there is one.
        format: JSON Schema's format, such as ``date-time``.
        default: The value that is taken when none is given.
    """

    name: str
    type: str = _ANY
    description: str = ""
    required: bool = False
    enum: tuple[Any, ...] = ()
    format: str = ""
    default: Any = None


class Tool(Record):
    """One callable of one agent. Its identity is (agent, name), never the bare name.

    Attributes:
        agent: Id of the owner.
        name: The name that its owner knows it by.
        title: A name for people.
        description: What it does, in its author's words.
        input_schema: JSON Schema of its arguments.
        output_schema: JSON Schema of its structured result, if it declares one.
        annotations: MCP's hints (``readOnlyHint`` ...); claims of the author, not facts.
        core: Whether many tools lean on it (Graph RAG-Tool Fusion, section 3.1).
        depends_on: The tools that it needs.
        capabilities: Ids of what it can do in the words of a taxonomy, as its author or a reviewer says.
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

    @property
    def id(self) -> str:
        """``agent/name``."""
        return f"{self.agent}/{self.name}"

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arguments that the input schema declares, in its order."""
        return parameters_of(self.input_schema)

    @cached_property
    def outputs(self) -> tuple[Parameter, ...]:
        """The fields that the output schema declares, in its order; empty without a schema."""
        return parameters_of(self.output_schema or {})


class Agent(Record):
    """Something that can be sent a step: an MCP server, a set of LangChain tools, a LangGraph app.

    Attributes:
        id: Its key, unique in the catalog.
        name: A name for people; the id where none is given.
        description: What it is for.
        instructions: What it tells a model that uses it.
        category: A word for its field, where the source gives one.
        tools: What it can do.
    """

    id: Name
    name: str = ""
    description: str = ""
    instructions: str = ""
    category: str = ""
    tools: tuple[Tool, ...] = ()

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


class Catalog(Record):
    """All agents with their tools and dependencies, checked as a whole.

    Raises:
        CatalogError: Two agents or nodes share an id, or a dependency points nowhere.
    """

    agents: tuple[Agent, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        ids: set[str] = set()
        for node in [n for agent in self.agents for n in (agent.id, *(tool.id for tool in agent.tools))]:
            if node in ids:
                raise CatalogError(f"two nodes of the catalog have the id {node!r}: rename one of the agents")
            ids.add(node)
        for tool in self.tools.values():
            for edge in tool.depends_on:
                if edge.tool not in self.tools:
                    raise CatalogError(
                        f"tool {tool.id!r} depends on {edge.tool!r}, which is not in the catalog"
                        f"{near_names(edge.tool, self.tools)}: correct the id or remove the dependency"
                    )
        return self

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool by id, in the order of the agents."""
        return {tool.id: tool for agent in self.agents for tool in agent.tools}

    @cached_property
    def by_id(self) -> Mapping[str, Agent]:
        """Every agent by id."""
        return {agent.id: agent for agent in self.agents}

    def agent(self, agent_id: str) -> Agent:
        """The agent of this id.

        Raises:
            UnknownNameError: There is none; the message names the nearest ids.
        """
        if agent_id not in self.by_id:
            raise UnknownNameError(f"no agent {agent_id!r} in the catalog{near_names(agent_id, self.by_id)}")
        return self.by_id[agent_id]

    def tool(self, tool_id: str) -> Tool:
        """The tool of this id.

        Raises:
            UnknownNameError: There is none; the message names the nearest ids.
        """
        if tool_id not in self.tools:
            raise UnknownNameError(f"no tool {tool_id!r} in the catalog{near_names(tool_id, self.tools)}")
        return self.tools[tool_id]


def parameters_of(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The properties of an object schema, in its order; what is not a property schema is passed over."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return ()
    needed = set(map(str, required)) if isinstance(required, list) else set()
    return tuple(
        Parameter(
            name=name,
            type=_type_of(spec),
            description=str(spec.get("description") or ""),
            required=name in needed,
            enum=tuple(spec["enum"]) if isinstance(spec.get("enum"), list) else (),
            format=str(spec.get("format") or ""),
            default=spec.get("default"),
        )
        for name, spec in properties.items()
        if isinstance(spec, dict)
    )


def _type_of(spec: Mapping[str, Any]) -> str:
    declared = spec.get("type")
    if isinstance(declared, str):
        return declared
    if isinstance(declared, list):
        return "|".join(map(str, declared))
    options = spec.get("anyOf") or spec.get("oneOf") or []
    found = [_type_of(option) for option in options if isinstance(option, dict)] if isinstance(options, list) else []
    return "|".join(dict.fromkeys(found)) or _ANY


def near_names(name: str, known: Iterable[str]) -> str:
    """A hint in brackets that names the known names nearest to a wrong one; empty if none is near, or it is long."""
    # Two names are compared in quadratic time.
    short = [other for other in known if len(other) <= _LONGEST_HINT >= len(name)]
    near = get_close_matches(name, short, n=3) if short else []
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""


def _in_words(error: ValidationError, most: int = 3) -> str:
    details = error.errors()
    said = []
    for detail in details[:most]:
        cause = detail.get("ctx", {}).get("error")
        where = ".".join(map(str, detail["loc"]))
        message = str(cause) if isinstance(cause, CatalogError) else detail["msg"]
        said.append(f"{where}: {message}" if where else message)
    if len(details) > most:
        said.append(f"and {len(details) - most} more")
    return "; ".join(said)
