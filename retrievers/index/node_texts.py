"""The nodes of an index: agents, tools and skills with their texts, and the protocols of indexes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Agent, Catalog, Parameter, Skill, Tool, shown, split_name
from callsheet.graphs.catalog.model import SKILL, SKILLS

Kind = Literal["agent", "tool", "skill"]
Span = tuple[int, int]
"""Start and end of a part of a query, in characters."""

Progress = Callable[[int, int], None]
"""A callback for progress: receives the number of texts that are embedded, and the total."""


@dataclass(frozen=True, slots=True)
class Node:
    """An agent, a tool or a skill in an index, with a text to embed and another for the search by words.

    Attributes:
        owner: Id of the owner of a tool; the own id of an agent or a skill.
        views: More texts to embed, each with its weight; ``text`` has the rest of the weight, up to 1.
    """

    id: str
    kind: Kind
    owner: str
    text: str
    words: str
    views: tuple[tuple[str, float], ...] = ()

    @property
    def bare(self) -> Node:
        """Returns the node without its texts, which are only needed to build an index."""
        return replace(self, text="", words="", views=())


@dataclass(frozen=True, slots=True)
class Changes:
    """The numbers of nodes that an update changed."""

    added: int = 0
    updated: int = 0
    removed: int = 0


@runtime_checkable
class VectorIndex(Protocol):
    """Searches nodes by the meaning of their texts."""

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Updates the index to exactly these nodes; embeds only new texts.

        If it is interrupted, the old state remains searchable, and the next call resumes.
        """
        ...

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """Returns the cosines of every node with the query, and with these parts of it, ``(1 + len(spans), n)``.

        Columns are in the order of the nodes. An index that does not compare all nodes gives the others the lowest.
        """
        ...


Texts = Literal["full", "plain", "concatenated"]
RECIPES: Mapping[Texts, str] = {"full": "r3", "plain": "p1", "concatenated": "c1"}
"""The version of the texts of the nodes; the name of an index contains it."""
_MAX_PARAMETERS = 12
_MAX_OUTPUTS = 6
_MAX_SENTENCE = 400
_MAX_WORDS = 4000
_MAX_DESCRIPTION = 1200
_VIEW = 0.2
_MORE = 5
_MAX_VALUES = 12
_MAX_VALUE = 40
_SERVER = frozenset({"mcp", "server"})
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|[。！？\n]")

IDENTIFIER = re.compile(r"[\w./-]{0,200}\w")
COMPOSED = re.compile(r"[_/.-]|[a-z][A-Z]")


def nodes_of(catalog: Catalog, texts: Texts = "full") -> tuple[Node, ...]:
    """Returns the agents, tools and skills of a catalog as nodes of one index, in this order.

    Measurements determined the ``full`` texts: of a tool, its agent, split name, first sentence and parameters with
    their allowed values; of an agent, its name and its tools' names. The name alone and the whole description have
    weights of .2 each. Search by words uses all texts. A skill is represented as a tool is. ``plain`` texts are those
    of the papers, name and description, and ``concatenated`` ones those of ScaleMCP (``concatenated_text``), both
    without skills.
    """
    agents = catalog.by_id
    nodes = list[Node]()
    if texts != "full":
        text_of = plain_text if texts == "plain" else concatenated_text
        nodes += [_published_node(agent, "agent", agent.id, text_of(agent)) for agent in catalog.agents]
        nodes += [_published_node(tool, "tool", tool.agent, text_of(tool)) for tool in catalog.tools.values()]
        return tuple(nodes)
    for agent in catalog.agents:
        name = shown(agent.name or agent.id)
        views = _views(agent.description if agent.tools else "", _subject(name), f"{name}: ", sentence="")
        nodes.append(Node(agent.id, "agent", agent.id, agent_text(agent), _agent_words(agent), views))
    for tool_id, tool in catalog.tools.items():
        agent = agents[tool.agent]
        name = split_name(tool.name)
        sentence = first_sentence(tool.description)
        views = _views(tool.description, name, f"{name}: ", sentence=sentence)
        nodes.append(Node(tool_id, "tool", agent.id, tool_text(agent, tool), _tool_words(agent, tool), views))
    return (*nodes, *map(_skill_node, catalog.skills))


def plain_text(node: Agent | Tool) -> str:
    """Returns the text that the papers embed for an agent or a tool: its name and its description, unchanged."""
    return f"{node.name or node.id}: {shown(node.description)}"


def concatenated_text(node: Agent | Tool) -> str:
    """Returns a tool with its parameters, or an agent with its tools, as one text; the embedder cuts it.

    Source: ScaleMCP (arXiv 2505.06416), its concatenated documents, without the questions that a language model
    writes for each tool.
    """
    parts = [plain_text(node)]
    if isinstance(node, Tool):
        parts += [f"{parameter.name}: {parameter.description}" for parameter in node.parameters]
    else:
        parts += map(plain_text, node.tools)
    return " ".join(parts)


def _published_node(node: Agent | Tool, kind: Kind, owner: str, text: str) -> Node:
    return Node(node.id, kind, owner, text, split_name(text))


def _skill_node(skill: Skill) -> Node:
    name = split_name(skill.name)
    sentence = first_sentence(skill.description)
    words = _joined((name, name, name, skill.name, skill.description))
    views = _views(skill.description, name, f"{name}: ", sentence=sentence)
    return Node(skill.id, "skill", skill.id, f"{name}. {sentence}", words, views)


def _views(description: str, name: str, prefix: str, *, sentence: str) -> tuple[tuple[str, float], ...]:
    """Returns the name alone, and the whole description if it is longer than the sentence that the text has."""
    whole = shown(description).strip()[:_MAX_DESCRIPTION]
    views = [(prefix + whole, _VIEW)] if len(whole) > len(sentence) + _MORE else []
    return (*views, (name or prefix, _VIEW))


def tool_text(agent: Agent, tool: Tool) -> str:
    """Returns the text that represents a tool as a vector."""
    parameters = ", ".join(map(_parameter, tool.parameters[:_MAX_PARAMETERS]))
    outputs = ", ".join(split_name(p.name) for p in tool.outputs[:_MAX_OUTPUTS])
    text = f"{_subject(agent.name or agent.id)}: {split_name(tool.name)}. {first_sentence(tool.description)}"
    return text + (f" ({parameters})" if parameters else "") + (f" -> {outputs}" if outputs else "")


def _parameter(parameter: Parameter) -> str:
    """Returns the name and the allowed values: a small set of values often shows what a tool can do."""
    short = (value for value in parameter.enum if isinstance(value, str) and len(value) <= _MAX_VALUE)
    words = list(filter(None, map(split_name, short)))
    return split_name(parameter.name) + (f": {' or '.join(words)}" if 0 < len(words) <= _MAX_VALUES else "")


def agent_text(agent: Agent) -> str:
    """Returns the text that represents an agent as a vector."""
    tools = ", ".join(split_name(tool.name) for tool in agent.tools)
    about = tools or first_sentence(agent.description)
    return f"{_subject(agent.name or agent.id)}: {about}"


def first_sentence(text: str) -> str:
    """Returns the first sentence of a description, at most 400 characters."""
    return _SENTENCE_END.split(shown(text).strip()[: _MAX_SENTENCE * 4], maxsplit=1)[0][:_MAX_SENTENCE].strip()


def _subject(name: str) -> str:
    """Returns the words of an agent's name without "MCP" and "server"."""
    return " ".join(word for word in split_name(name).split() if word not in _SERVER) or shown(name)


def _agent_words(agent: Agent) -> str:
    names = (split_name(tool.name) for tool in agent.tools)
    return _joined((agent.id, agent.name, agent.category, agent.description, *names))


def _tool_words(agent: Agent, tool: Tool) -> str:
    name = split_name(tool.name)
    fields = (f"{split_name(p.name)} {p.description}" for p in (*tool.parameters, *tool.outputs))
    return _joined((agent.id, agent.name, name, name, name, tool.name, tool.title, tool.description, *fields))


def _joined(parts: Iterable[str]) -> str:
    return " ".join(shown(part) for part in parts if part)[:_MAX_WORDS]


def _own_name(node: Node) -> str:
    """Returns the id of a node without its owner."""
    if node.kind == "skill":
        _, _, served = node.id.partition(f"/{SKILL}")
        return served or node.id.removeprefix(f"{SKILLS}/")
    return node.id.removeprefix(f"{node.owner}/")


def identifiers(nodes: Sequence[Node]) -> Mapping[str, list[int]]:
    """Maps case-folded ids and names to rows; names that are ordinary words are left out.

    Names with an underscore, a hyphen, a dot or an inner capital are not ordinary words.
    """
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, node in enumerate(nodes):
        name = _own_name(node)
        names = (name if COMPOSED.search(name) else "", node.id if node.kind != "agent" else "")
        for text in {text.casefold() for text in names if IDENTIFIER.fullmatch(text)}:
            rows[text].append(row)
    return dict(rows)
