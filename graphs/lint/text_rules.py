"""Rules on names and descriptions that help retrieval."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from callsheet.graphs.catalog.errors import Severity
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.lint.lint_rule import Remark, Subject, listed, on, rule
from callsheet.graphs.text.sanitizing import shown, split_name

ALIKE, _COMPARED = 0.75, 300


@rule("empty-description", Severity.WARNING, "A tool has neither a description nor a title.")
def empty_description(subject: Subject) -> Iterator[Remark]:
    """Only names can match a query: its own, and those of its parameters and results."""
    for tool in subject.catalog.tools.values():
        if not shown(tool.description).strip() and not shown(tool.title).strip():
            fields = {"its parameters": tool.parameters, "its results": tool.outputs}
            names = " and ".join(["its name", *(what for what, found in fields.items() if found)])
            yield on(tool, f"has no description, so only {names} can match: describe it in one sentence")


@rule("undescribed-agent", Severity.INFO, "An agent has neither a description nor instructions.")
def undescribed_agent(subject: Subject) -> Iterator[Remark]:
    """The description is part of the ranking of agents."""
    for agent in subject.catalog.agents:
        if not (agent.description.strip() or agent.instructions.strip()):
            yield Remark('has no description: add a "description" to its entry or manifest', agent.id)


@rule("duplicate-description", Severity.WARNING, "Several tools of one agent have the same description, word for word.")
def duplicate_description(subject: Subject) -> Iterator[Remark]:
    """Copied descriptions do not distinguish tools."""
    for agent in subject.catalog.agents:
        same: defaultdict[str, list[Tool]] = defaultdict(list)
        for tool in agent.tools:
            if text := " ".join(shown(tool.description).casefold().split()):
                same[text].append(tool)
        for first, *others in same.values():
            if others:
                names = listed([tool.name for tool in others])
                yield on(first, f"has the same description as {names}: describe the difference")


@rule(
    "near-identical-tools",
    Severity.WARNING,
    f"Tools of different agents share {ALIKE:.0%} of the words in their names and in the first {_COMPARED} characters "
    "of their descriptions. In the name of a tool, the words of its agent's name do not count.",
)
def near_identical_tools(subject: Subject) -> Iterator[Remark]:
    """Their texts do not show which of them a request means."""
    words = {tool.id: _words_of(tool) for tool in subject.catalog.tools.values()}
    owner = {tool.id: tool.agent for tool in subject.catalog.tools.values()}
    pairs = [(a, b) for a, b in similar_pairs(words, ALIKE) if owner[a] != owner[b]]
    for first, *others in _clusters(pairs, list(words)):
        names = listed([tool for tool in others if owner[tool] != owner[first]])
        message = f"is nearly identical to {names}: distinguish them in their descriptions, or leave one out"
        yield on(subject.catalog.tool(first), message)


@rule(
    "undescribed-parameter",
    Severity.INFO,
    "A parameter has no description in the schema, and the tool's description does not mention it.",
)
def undescribed_parameter(subject: Subject) -> Iterator[Remark]:
    """One remark per tool; a list of arguments in the tool's description counts."""
    for tool in subject.catalog.tools.values():
        about = shown(tool.description)
        undescribed = [repr(p.name) for p in tool.parameters if not p.description.strip() and p.name not in about]
        if undescribed:
            yield on(tool, f"does not describe these parameters: {listed(undescribed)}")


def _words_of(tool: Tool) -> frozenset[str]:
    name = set(split_name(tool.name).split()) - set(split_name(tool.agent).split())
    return frozenset(name | set(split_name(shown(tool.description)[:_COMPARED].casefold()).split()))


def _clusters(pairs: Iterable[tuple[str, str]], order: list[str]) -> list[list[str]]:
    """The connected components of these pairs; components and their tools in the order of the catalog."""
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph(pairs)
    place = {tool: i for i, tool in enumerate(order)}
    clusters = [sorted(tools, key=place.__getitem__) for tools in nx.connected_components(graph)]
    return sorted(clusters, key=lambda cluster: place[cluster[0]])


_ROUNDING, _SHARED = 1e-9, 4


def similar_pairs(words: Mapping[str, frozenset[str]], least: float) -> Iterator[tuple[str, str]]:
    """All pairs of sets with at least this Jaccard similarity, 0 < least <= 1; empty sets are similar to none.

    ::

        J(x, y) = |x & y| / |x | y|

    Two such sets share l of the rarest ``|x| - ceil(least |x|) + l`` words of either, for each l up to
    ``ceil(least |x|)``. Only sets that share four of these are compared.

    Source: Wang, Li and Feng, Can We Beat the Prefix Filtering? (2012), l-prefix scheme.
    """
    import numpy as np

    keys, count = list(words), Counter(word for members in words.values() for word in members)
    rarity = {word: rank for rank, word in enumerate(sorted(count, key=lambda word: (count[word], word)))}
    common = [math.ceil(least * len(members) - _ROUNDING) for members in words.values()]
    holders: defaultdict[str, list[int]] = defaultdict(list)
    prefixes = list[list[str]]()
    for i, members in enumerate(words.values()):
        prefixes.append(sorted(members, key=rarity.__getitem__)[: len(members) - common[i] + _SHARED])
        for word in prefixes[i]:
            holders[word].append(i)
    places = {word: np.array(found, np.int32) for word, found in holders.items()}
    for i, key in enumerate(keys):
        before = [places[word][: places[word].searchsorted(i)] for word in prefixes[i]]
        shared = np.bincount(np.concatenate(before)) if before else np.empty(0)
        for j in np.flatnonzero(shared >= min(_SHARED, common[i])).tolist():
            both = len(words[key] & words[keys[j]])
            if both >= least * (len(words[key]) + len(words[keys[j]]) - both):
                yield keys[j], key
