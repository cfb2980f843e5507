"""The selection of agents in Agent-as-a-Graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callsheet.graphs import KnowledgeGraph, NodeKind, kind_of, owner
from callsheet.retrievers.papers.rank_fusion import RRF_K, RankedNode, weighted_rrf

PUBLISHED_WEIGHTS: Mapping[NodeKind, float] = {"agent": 1.5, "tool": 1.0}


def agent_as_a_graph(
    merged: Sequence[str],
    graph: KnowledgeGraph,
    *,
    agents: int | None,
    weights: Mapping[NodeKind, float] = PUBLISHED_WEIGHTS,
    k: int = RRF_K,
) -> list[RankedNode]:
    """Returns the top agents of a merged list of agents and tools, by type-weighted fusion and owner traversal.

    Source: Agent-as-a-Graph, Algorithm 1: take the top N of the joint index (lines 1-2), rescore by Eq. 3
    (lines 3-6), then go down the list and add each agent, or the owner of each tool, up to K unique
    agents (lines 7-14). With k = 60 and 1.5 : 1, an agent of rank r_A is above a tool of rank
    r_T if r_A < 30 + 1.5 r_T, so that in a short list all agents come first and the traversal is never used.

    Args:
        merged: The top N nodes of both types by similarity, best first.
        graph: Agents and their tools.
        agents: K, maximum number of agents; None: no maximum.
        weights: alpha of each type.
        k: As in Eq. 3.

    Returns:
        At most K agents, each with the score of its best node, best first.
    """
    hits: dict[str, RankedNode] = {}
    for hit in weighted_rrf(merged, lambda node: weights[kind_of(graph, node)], k=k):
        if len(hits) == agents:
            break
        agent = owner(graph, hit.id)
        hits.setdefault(agent, RankedNode(agent, hit.score))
    return list(hits.values())
