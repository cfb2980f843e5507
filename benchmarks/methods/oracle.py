"""How much a reranker could win: ours with one that knows the answers. Headroom, never a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document

from benchmarks.methods.ours import DEFAULT, ours_at
from benchmarks.methods.search import Rank, World
from benchmarks.sets.cases import Case, Level
from callsheet.graphs.text.sanitizing import clean

ORACLE = "Callsheet, reranked by an oracle"
HEADROOM = "headroom: it knows the answers"
SETS = ("livemcpbench-steps", "toollinkos-published", "toollinkos-shuffled", "toolsandbox")

Wanted = Mapping[str, Sequence[frozenset[str]]]
"""Query -> a set of alternatives for each wanted item."""


class Oracle:
    """A reranker that puts what is wanted first, as far as it is shown it, and leaves the rest as it was.

    Args:
        wanted: What is wanted for each query.
        level: Whether agents or tools are wanted.
    """

    def __init__(self, wanted: Wanted, level: Level) -> None:
        self._wanted = wanted
        self._key = "agent" if level == "agent" else "id"

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Of each set of alternatives the one that stands highest, in their old order; then the others."""
        best: list[int] = []
        for alternatives in self._wanted.get(query, ()):
            places = (i for i, document in enumerate(documents) if document.metadata[self._key] in alternatives)
            best.extend(place for place in [next(places, None)] if place is not None)
        first = sorted(set(best))
        return [documents[i] for i in (*first, *(i for i in range(len(documents)) if i not in first))]


def oracle(world: World, level: Level, depth: int, cases: Iterable[Case]) -> Rank:
    """Ours with its first 20 tools reordered by one who knows the answers: what is to be won there.

    Args:
        world: The catalog, and the vectors that all methods share.
        level: Whether agents or tools are ranked.
        depth: How many are wanted.
        cases: The queries with their answers.
    """
    return ours_at(world, level, depth, reranker=Oracle(wanted(cases, level), level))[DEFAULT]


def wanted(cases: Iterable[Case], level: Level) -> Wanted:
    """What each query, as a selector hands it on, wants; where two are worded alike, all that both want."""
    found: dict[str, list[frozenset[str]]] = {}
    for case in cases:
        found.setdefault(clean(case.query), []).extend(frozenset(element) for element in case.gold(level))
    return found
