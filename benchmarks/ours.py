"""Our default retriever as one more method: nothing is set for a benchmark."""

from __future__ import annotations

from benchmarks.cases import Level
from benchmarks.search import Rank, World
from callsheet.retrievers import AgentGraphRetriever


def ours(world: World, level: Level, depth: int) -> Rank:
    """``AgentGraphRetriever`` as it comes: the agents, or the tools, that it selects.

    Args:
        world: The catalog, and the vectors that all methods share.
        level: Whether agents or tools are ranked.
        depth: How many are wanted; the budget of a selection has at least its default size.
    """
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)

    def rank(query: str) -> list[str]:
        if level == "agent":
            return [agent.id for agent in retriever.select(query, agents=max(depth, 5)).agents]
        return [tool.id for tool in retriever.select(query, agents=max(depth, 10), tools=max(depth, 10)).tools]

    return rank
