"""Our default retriever as one more method, and the few settings that a user might choose for a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.methods.search import Rank, World
from benchmarks.sets.cases import Level
from callsheet.retrievers import AgentGraphRetriever, Reranker

DEFAULT = "default"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    DEFAULT: {},
    "lexical_weight=.2": {"lexical_weight": 0.2},
    "lexical_weight=.4": {"lexical_weight": 0.4},
    "listing=.85": {"listing": 0.85},
}


def ours_at(
    world: World,
    level: Level,
    depth: int,
    *,
    reranker: Reranker | None = None,
    settings: Mapping[str, Mapping[str, Any]] = SETTINGS,
) -> Mapping[str, Rank]:
    """``AgentGraphRetriever`` as it comes, and under each of the settings: the agents, or the tools, it selects.

    Args:
        world: The catalog, and the vectors that all methods share.
        level: Whether agents or tools are ranked.
        depth: How many are wanted; the budget of a selection has at least its default size.
        reranker: What puts the first tools into its own order; none by default.
        settings: Name -> fields of ``SelectSettings``.
    """
    retriever = AgentGraphRetriever.from_catalog(
        world.catalog, index=":memory:", embeddings=world.vectors, reranker=reranker
    )
    most = max(depth, 10)

    def ranked(changes: Mapping[str, Any]) -> Rank:
        def rank(query: str) -> list[str]:
            if level == "agent":
                return [agent.id for agent in retriever.select(query, agents=max(depth, 5), **changes).agents]
            return [tool.id for tool in retriever.select(query, agents=most, tools=most, **changes).tools]

        return rank

    return {name: ranked(changes) for name, changes in settings.items()}
