"""Rules on names and texts: they must help retrieval and must not mislead a model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import networkx as nx

from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.errors import Severity
from callsheet.graphs.lint.lint_rule import Remark, Subject, first_names, on, quoted, rule
from callsheet.graphs.text.hidden import LONGEST_TEXT, Hidden, hidden_in, shown
from callsheet.graphs.text.unicode import strings_in
from callsheet.graphs.text.words import split_name

ALIKE = 0.75
"""Share of common words at which two tools count as nearly identical."""
_COMPARED = 300
"""Characters of a description that are compared."""


@rule("empty-description", Severity.WARNING, "A tool has neither a description nor a title.")
def empty_description(subject: Subject) -> Iterator[Remark]:
    """Reports tools without a description; only their names, parameters and results can match a query."""
    for tool in subject.catalog.tools.values():
        if not shown(tool.description).strip() and not shown(tool.title).strip():
            searchable = ["its name"]
            if tool.parameters:
                searchable.append("its parameters")
            if tool.outputs:
                searchable.append("its results")
            names = " and ".join(searchable)
            yield on(tool, f"has no description, so only {names} can match: describe it in one sentence")


@rule("undescribed-agent", Severity.INFO, "An agent has neither a description nor instructions.")
def undescribed_agent(subject: Subject) -> Iterator[Remark]:
    """Reports agents without a description, which is one of the texts by which agents are ranked."""
    for agent in subject.catalog.agents:
        if not (agent.description.strip() or agent.instructions.strip()):
            yield Remark('has no description: add a "description" to its entry or manifest', agent.id)


@rule("duplicate-description", Severity.WARNING, "Several tools of one agent have the same description, word for word.")
def duplicate_description(subject: Subject) -> Iterator[Remark]:
    """Reports tools with the same description, which does not distinguish them."""
    for agent in subject.catalog.agents:
        same: defaultdict[str, list[Tool]] = defaultdict(list)
        for tool in agent.tools:
            text = " ".join(shown(tool.description).casefold().split())
            if text:
                same[text].append(tool)
        for first, *others in same.values():
            if others:
                names = first_names([tool.name for tool in others])
                yield on(first, f"has the same description as {names}: describe the difference")


@rule(
    "near-identical-tools",
    Severity.WARNING,
    f"Tools of different agents share {ALIKE:.0%} of the words in their names and in the first {_COMPARED} characters "
    "of their descriptions. In the name of a tool, the words of its agent's name do not count.",
)
def near_identical_tools(subject: Subject) -> Iterator[Remark]:
    """Reports similar tools of different agents; their texts do not show which one a request means."""
    words = {tool.id: _words_of(tool) for tool in subject.catalog.tools.values()}
    owner = {tool.id: tool.agent for tool in subject.catalog.tools.values()}
    position = {tool: number for number, tool in enumerate(words)}
    pairs: nx.Graph[str] = nx.Graph()
    for one, other in similar_pairs(words, ALIKE):
        if owner[one] != owner[other]:
            pairs.add_edge(one, other)
    # Each cluster has one remark, at its first tool in the order of the catalog.
    clusters = [sorted(tools, key=position.__getitem__) for tools in nx.connected_components(pairs)]
    clusters.sort(key=lambda cluster: position[cluster[0]])
    for first, *others in clusters:
        names = first_names([tool for tool in others if owner[tool] != owner[first]])
        message = f"is nearly identical to {names}: distinguish them in their descriptions, or leave one out"
        yield on(subject.catalog.tool(first), message)


@rule(
    "undescribed-parameter",
    Severity.INFO,
    "A parameter has no description in the schema, and the tool's description does not mention it.",
)
def undescribed_parameter(subject: Subject) -> Iterator[Remark]:
    """Reports the parameters without a description, once per tool; a list in the tool's description counts."""
    for tool in subject.catalog.tools.values():
        about = shown(tool.description)
        undescribed = list[str]()
        for parameter in tool.parameters:
            if not parameter.description.strip() and parameter.name not in about:
                undescribed.append(repr(parameter.name))
        if undescribed:
            yield on(tool, f"does not describe these parameters: {first_names(undescribed)}")


def _words_of(tool: Tool) -> frozenset[str]:
    """Returns the words that are compared; the name of the agent does not distinguish its tools from copies."""
    name = set(split_name(tool.name).split()) - set(split_name(tool.agent).split())
    description = split_name(shown(tool.description)[:_COMPARED].casefold())
    return frozenset(name | set(description.split()))


def similar_pairs(words: Mapping[str, frozenset[str]], least: float) -> Iterator[tuple[str, str]]:
    """Yields all pairs of sets whose Jaccard similarity ``|x & y| / |x | y|`` is at least ``least``, which is above 0.

    Only sets with a common word are compared, so the time grows with these pairs, not with all pairs.
    """
    import numpy as np

    keys = list(words)
    sizes = np.array([len(members) for members in words.values()])
    indices: defaultdict[str, list[int]] = defaultdict(list)
    for i, members in enumerate(words.values()):
        for word in members:
            indices[word].append(i)
    sets_with = {word: np.array(numbers) for word, numbers in indices.items()}
    for i, (key, members) in enumerate(words.items()):
        # shared[j]: how many words the sets i and j have in common, for each j before i.
        shared = np.zeros(i, int)
        earlier = [sets_with[word][: sets_with[word].searchsorted(i)] for word in members]
        if earlier:
            shared = np.bincount(np.concatenate(earlier), minlength=i)
        union = sizes[i] + sizes[:i] - shared
        for j in np.flatnonzero((shared > 0) & (shared >= least * union)):
            yield keys[j], key


_NAME = re.compile(r"([`'\"]?)([^\W_][\w.-]*(?:/[\w.-]+)?)([`'\"]?)")
_COMPOUND = re.compile(r"[_/.-]|[a-z][A-Z]|\d")
"""What tells the name of a tool from an ordinary word: a separator, an inner capital or a digit."""
_NEAR = 80
"""Characters of context that are shown on each side of a name."""
MANY = 10
"""Maximum number of agents of other systems that may depend on one agent without a remark."""
_OF_AGENT = ("id", "name", "description", "instructions", "category")
_OF_TOOL = ("name", "title", "description", "input_schema", "output_schema", "annotations")
_OF_SKILL = ("name", "description", "text")


@dataclass(frozen=True, slots=True)
class _Place:
    """A field of an agent, a tool or a skill, with its texts from outside."""

    where: str
    texts: tuple[str, ...]
    agent: str
    tool: str = ""

    def remark(self, message: str) -> Remark:
        """Returns a remark that begins with the name of the field."""
        return Remark(f"{self.where} {message}", self.agent, self.tool)


@rule(
    "hidden-text",
    Severity.ERROR,
    "A name, a text or a value contains Unicode tags, bidirectional overrides, control characters or ANSI sequences.",
)
def hidden_text(subject: Subject) -> Iterator[Remark]:
    """Reports characters that people do not see; they are removed before a model sees the text."""
    return _hidden(subject, (Hidden.TAG, Hidden.BIDI, Hidden.CONTROL))


@rule(
    "invisible-characters",
    Severity.WARNING,
    "A name, a text or a value contains zero-width or other invisible characters that its script does not need.",
)
def invisible_characters(subject: Subject) -> Iterator[Remark]:
    """Reports invisible characters that are often pasted by accident; legitimate joiners do not count."""
    return _hidden(subject, (Hidden.INVISIBLE,))


@rule("long-text", Severity.WARNING, f"A text has more than {LONGEST_TEXT:,} characters; a model sees no more.")
def long_text(subject: Subject) -> Iterator[Remark]:
    """Reports texts that are too long; the rest of them is neither shown nor embedded."""
    for place in chain.from_iterable(_places_by_agent(subject)):
        for text in place.texts:
            if len(text) > LONGEST_TEXT:
                yield place.remark(f"has {len(text):,} characters; only the first {LONGEST_TEXT:,} are shown")


@rule("shadowing", Severity.WARNING, "A text of one agent names a tool of another agent.")
def shadowing(subject: Subject) -> Iterator[Remark]:
    """Reports a text that names a tool of another server, because it could turn a model against that tool.

    An ordinary word counts as a name only in quotation marks.
    """
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for tool in subject.catalog.tools.values():
        for name in (tool.name, tool.id):
            owners[name].add(tool.agent)
    for agent, places in zip(subject.catalog.agents, _places_by_agent(subject), strict=True):
        own_names = {agent.id, agent.name}
        for tool in agent.tools:
            # A parameter or a result may have the name of another agent's tool.
            own_names.update(parameter.name for parameter in (*tool.parameters, *tool.outputs))
        for place in places:
            for text in place.texts:
                for name, context in _tool_names_in(text, owners):
                    if agent.id not in owners[name] and name not in own_names:
                        message = f"names {quoted(name)}, a tool of agent {min(owners[name])!r}: {quoted(context)}"
                        yield place.remark(message)
                        break  # one remark for each text


@rule("source-of-many", Severity.WARNING, f"{MANY} or more other agents depend on an agent's tools, or seem to.")
def source_of_many(subject: Subject) -> Iterator[Remark]:
    """Reports an agent on which many others depend, so that its tools would be selected with theirs.

    Agents of the same system do not count.
    """
    tools = subject.catalog.tools
    system = {agent.id: agent.system_key for agent in subject.catalog.agents}
    edges = [(edge.source, edge.target) for edge in subject.proposals]
    for tool in tools.values():
        edges.extend((tool.id, edge.tool) for edge in tool.depends_on)
    dependents: defaultdict[str, set[str]] = defaultdict(set)
    for source, target in edges:
        user = tools[source].agent
        provider = tools[target].agent
        if system[user] != system[provider]:
            dependents[provider].add(user)
    for agent, others in sorted(dependents.items()):
        if len(others) >= MANY:
            names = first_names(sorted(others))
            yield Remark(
                f"its tools seem to return arguments of {len(others)} other agents ({names}): they do not count as "
                "sources unless you trust it, or accept dependencies one by one (callsheet infer)",
                agent,
            )


def _tool_names_in(text: str, known: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yields the known names of tools in a text, each with the characters around it."""
    text = shown(text)
    for match in _NAME.finditer(text):
        opening, name, closing = match.groups()
        name = name.rstrip(".-")
        if name not in known:
            continue
        # The pattern takes a closing quote for a part of the name if it stands behind a dot or a hyphen.
        in_quotes = bool(opening) and (bool(closing) or match.group().endswith(opening))
        if in_quotes or _COMPOUND.search(name):
            yield name, text[max(0, match.start() - _NEAR) : match.end() + _NEAR]


def _hidden(subject: Subject, kinds: tuple[Hidden, ...]) -> Iterator[Remark]:
    """Yields a remark for each place that has hidden characters of these kinds."""
    for place in chain(*_places_by_agent(subject), _places_of_skills(subject)):
        counts = Counter[Hidden]()
        for text in place.texts:
            counts.update(hidden_in(text))
        summary = " and ".join(f"{counts[kind]} {kind}" for kind in counts if kind in kinds)
        if summary:
            yield place.remark(f"has {summary} characters that are invisible: remove them at the source")


def _places_of_skills(subject: Subject) -> Iterator[_Place]:
    for skill in subject.catalog.skills:
        yield from _places(skill, _OF_SKILL, skill.owner, skill.id)


def _places_by_agent(subject: Subject) -> Iterator[list[_Place]]:
    """Yields the places of each agent and its tools, in the order of the catalog."""
    for agent in subject.catalog.agents:
        places = list(_places(agent, _OF_AGENT, agent.id))
        for tool in agent.tools:
            places += _places(tool, _OF_TOOL, agent.id, tool.id)
            texts = tuple(strings_in([[edge.parameter, edge.reason] for edge in tool.depends_on]))
            if texts:
                places.append(_Place("its dependencies", texts, agent.id, tool.id))
        yield places


def _places(node: object, fields: Iterable[str], agent: str, tool: str = "") -> Iterator[_Place]:
    for field in fields:
        value = getattr(node, field)
        if value:
            yield _Place(f"its {field.replace('_', ' ')}", tuple(strings_in(value)), agent, tool)
