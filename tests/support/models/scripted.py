"""A selector over scores that a test wrote down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Tool
from callsheet.retrievers import Changes, LexicalIndex, Node, Selector, SelectSettings, nodes_of
from callsheet.retrievers.index.node_texts import Progress, Span
from callsheet.retrievers.selection.decision import ToolJudge

DIRECT, INDIRECT = DependencyKind.TOOL_DIRECTLY, DependencyKind.TOOL_INDIRECTLY
Parts = Mapping[str, Mapping[str, float]]


class Scripted:
    """A vector index that gives the scores that a test wrote down, 0 where it wrote none; and others for a part."""

    def __init__(self, nodes: Sequence[Node], scores: Mapping[str, float], parts: Parts) -> None:
        self.nodes, self.default, self.parts = nodes, scores, parts

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        return Changes()

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        texts = [query, *(query[start:end] for start, end in spans)]
        wanted = [self.parts.get(text, self.default) for text in texts]
        return np.array([[of.get(node.id, 0.0) for node in self.nodes] for of in wanted], np.float32)


def catalog_of(**needs: str) -> Catalog:
    """``a_x="b_y c_z?"`` is tool x of agent a, which needs b/y, and may need c/z."""
    words = [*needs, *(word.rstrip("?") for text in needs.values() for word in text.split())]
    tools: dict[str, list[Tool]] = {}
    for word in dict.fromkeys(words):
        agent, name = word.split("_")
        edges = tuple(
            Dependency(tool=w.rstrip("?").replace("_", "/"), kind=INDIRECT if w.endswith("?") else DIRECT)
            for w in needs.get(word, "").split()
        )
        tools.setdefault(agent, []).append(Tool(agent=agent, name=name, depends_on=edges))
    return Catalog(agents=tuple(Agent(id=agent, tools=tuple(made)) for agent, made in tools.items()))


def tools_of_a(**needs: str) -> Catalog:
    """``x="y z?"`` is tool x of agent a, which needs a/y, and may need a/z."""

    def full(words: str) -> str:
        return " ".join(f"a_{word}" for word in words.split())

    return catalog_of(**{full(name): full(words) for name, words in needs.items()})


def selector(
    catalog: Catalog,
    scores: Mapping[str, float],
    words: Mapping[str, str] | None = None,
    parts: Parts | None = None,
    made: SelectSettings | None = None,
    judge: ToolJudge | None = None,
) -> Selector:
    nodes = [replace(node, words=(words or {}).get(node.id, "")) for node in nodes_of(catalog)]
    return Selector(catalog, Scripted(nodes, scores, parts or {}), LexicalIndex(nodes), made, nodes=nodes, judge=judge)
