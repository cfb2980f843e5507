"""The JSON answers of the explorer, field by field; every text is safe to display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from callsheet.graphs import escaped
from callsheet.graphs.text.sanitizing import counted

NodeName = Literal["agent", "tool", "skill", "capability"]
Side = Literal["above", "before", "after", "below"]
LONGEST, LONGEST_LINE = 4_096, 240


def shown_text(text: str, *, most: int = LONGEST) -> str:
    """A foreign text for a person: hidden characters written out, and limited in length."""
    if len(text) > most:
        return f"{escaped(text[:most])} … ({counted(len(text) - most, 'more character')})"
    return escaped(text)


def shown_line(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(escaped(text[: LONGEST_LINE * 2]).split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a node: exact id, label for display, kind, and one line of description."""

    id: str
    label: str
    kind: NodeName
    about: str = ""


@dataclass(frozen=True, slots=True)
class Neighbour(Link):
    """A neighbour of a node.

    Attributes:
        relation: The relation: ``td``, ``ti``, ``pd``, ``pi`` (kinds of dependency), ``owner``, ``capability``,
            ``broader``, or ``agents`` for dependencies between agents.
        words: The relation in words, with details.
        unreviewed: Whether nobody has reviewed it yet.
    """

    relation: str = ""
    words: str = ""
    unreviewed: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbours of one kind: the total number, and the first of them."""

    side: Side
    title: str
    total: int
    items: tuple[Neighbour, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter of a tool, or a field of its result."""

    name: str
    type: str
    required: bool
    about: str


@dataclass(frozen=True, slots=True)
class Said:
    """A term with its text, and further lines such as a diff."""

    term: str
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """An agent, a tool, a skill or a capability with its neighbours.

    Attributes:
        id: As in ``Link``.
        label: As in ``Link``.
        kind: As in ``Link``.
        title: Display name, if it has another one.
        about: Description.
        groups: Neighbours.
        owner: The agent of a tool.
        facts: Further facts: instructions, category, hints, whether it is a core tool.
        parameters: Arguments of a tool.
        outputs: Fields of a tool's result.
        schemas: JSON Schemas as text.
        pins: The accepted definition, and differences from it.
    """

    id: str
    label: str
    kind: NodeName
    title: str
    about: str
    groups: tuple[Group, ...]
    owner: Link | None = None
    facts: tuple[Said, ...] = ()
    parameters: tuple[Field, ...] = ()
    outputs: tuple[Field, ...] = ()
    schemas: tuple[Said, ...] = ()
    pins: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class Overview:
    """The first view of the page.

    Attributes:
        user: The signed-in user; empty if anonymous.
        agents: Number of visible agents.
        tools: Number of visible tools.
        skills: Number of visible skills.
        dependencies: Number of dependencies that a person wrote or accepted.
        inferred: Number of other dependencies.
        policy: What the policy hides, in words.
        left_out: Problems of the catalog.
        runs: Whether past runs are shown.
        asks: Whether requests can be run.
        quarantined: Number of visible changes of servers that somebody has to accept before use.
    """

    user: str
    agents: int
    tools: int
    skills: int
    dependencies: int
    inferred: int
    policy: str
    left_out: tuple[str, ...]
    runs: bool
    asks: bool
    quarantined: int = 0


@dataclass(frozen=True, slots=True)
class Agents:
    """A page of the list of agents, each with its number of tools in ``words``, and the number of all that match."""

    total: int
    items: tuple[Neighbour, ...]
