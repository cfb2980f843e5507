"""What the explorer's routes answer, field by field; every text in it is fit to be shown as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from callsheet.graphs import escaped
from callsheet.graphs.text.sanitizing import counted

NodeName = Literal["agent", "tool", "capability"]
Side = Literal["above", "before", "after", "below"]
LONGEST, LONGEST_LINE = 4_096, 240


def shown_text(text: str, *, most: int = LONGEST) -> str:
    """A text from outside for a person who has to judge it: hidden characters written out, and not endless."""
    if len(text) > most:
        return f"{escaped(text[:most])} … ({counted(len(text) - most, 'more character')})"
    return escaped(text)


def shown_line(text: str) -> str:
    """The beginning of a text on one line."""
    line = " ".join(escaped(text[: LONGEST_LINE * 2]).split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


@dataclass(frozen=True, slots=True)
class Link:
    """Something that can be walked to.

    Attributes:
        id: Its id, exactly.
        label: The same for a reader.
        kind: What it is.
        about: One line on it.
    """

    id: str
    label: str
    kind: NodeName
    about: str = ""


@dataclass(frozen=True, slots=True)
class Neighbour(Link):
    """Something beside a node.

    Attributes:
        relation: How they are related: ``td``, ``ti``, ``pd``, ``pi`` (the kinds of dependency), ``owner``,
            ``capability``, ``broader``, or ``agents`` for dependencies between agents.
        words: The same in words, with what else is known of it.
        unreviewed: Whether nobody stands for it yet.
    """

    relation: str = ""
    words: str = ""
    unreviewed: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbours of one sort.

    Attributes:
        side: Where they stand.
        title: What they are to the node.
        total: How many there are.
        items: The first of them.
    """

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
    """A term and what is said of it.

    Attributes:
        term: The term.
        text: What is said.
        detail: More, line by line, such as a difference; empty where there is none.
    """

    term: str
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """An agent, a tool or a capability with its neighbourhood.

    Attributes:
        id: As in ``Link``.
        label: As in ``Link``.
        kind: As in ``Link``.
        title: A name for people, where there is another.
        about: Its description.
        owner: Of a tool, its agent.
        facts: What else is known: instructions, category, hints, whether it is a core tool.
        parameters: Of a tool, its arguments.
        outputs: Of a tool, the fields of its result.
        schemas: JSON Schemas as text.
        pins: What was accepted of it, and what differs from that.
        groups: Its neighbours.
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
    """What the page shows first.

    Attributes:
        user: Who is signed in; empty for nobody in particular.
        agents: How many agents may be seen.
        tools: How many tools.
        dependencies: Number of dependencies that a person wrote or accepted.
        inferred: Number of the other dependencies.
        policy: What a policy withholds, in words.
        left_out: What could not be read of the catalog.
        runs: Whether past runs are shown here.
    """

    user: str
    agents: int
    tools: int
    dependencies: int
    inferred: int
    policy: str
    left_out: tuple[str, ...]
    runs: bool


@dataclass(frozen=True, slots=True)
class Agents:
    """A part of the list of agents.

    Attributes:
        total: How many fit.
        items: Those of this part, each with its number of tools in ``words``.
    """

    total: int
    items: tuple[Neighbour, ...]
