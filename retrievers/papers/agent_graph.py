"""The selection of agents in Agent-as-a-Graph, and the standard weighted fusion that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from callsheet.graphs import KnowledgeGraph, NodeKind, kind_of, owner
from callsheet.retrievers.papers.rank_fusion import (
    RRF_K,
    RankContribution,
    RankedAgent,
    reciprocal_rank_fusion,
    weighted_rrf,
)

PUBLISHED_WEIGHTS: Mapping[NodeKind, float] = {"agent": 1.5, "tool": 1.0}


def agent_as_a_graph(
    merged: Sequence[str],
    graph: KnowledgeGraph,
    *,
    agents: int | None,
    weights: Mapping[NodeKind, float] = PUBLISHED_WEIGHTS,
    k: int = RRF_K,
) -> list[RankedAgent]:
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
        At most K agents, each with the score of its best node and that node's rank r(e), best first.
    """
    rank_of = {node: rank for rank, node in enumerate(merged, 1)}
    best: dict[str, RankedAgent] = {}
    for hit in weighted_rrf(merged, lambda node: weights[kind_of(graph, node)], k=k):
        if len(best) == agents:
            break
        agent = owner(graph, hit.id)
        term = RankContribution(hit.id, rank_of[hit.id], weights[kind_of(graph, hit.id)], k)
        best.setdefault(agent, RankedAgent(agent, hit.score, (term,)))
    return list(best.values())


def first_of_each_type(order: Sequence[str], graph: KnowledgeGraph, *, n: int) -> list[str]:
    """Returns the first n agents and the first n tools of an order of nodes, in that order.

    Source: Agent-as-a-Graph, Algorithm 1, lines 1 and 2, read as N agents and N tools.
    """
    counts: dict[NodeKind, int] = {"agent": 0, "tool": 0}
    merged: list[str] = []
    for node in order:
        kind = kind_of(graph, node)
        counts[kind] += 1
        if counts[kind] <= n:
            merged.append(node)
    return merged


def fusion_of_two_lists(
    agent_list: Sequence[str],
    tool_list: Sequence[str],
    graph: KnowledgeGraph,
    *,
    agents: int | None,
    weights: Mapping[NodeKind, float] = PUBLISHED_WEIGHTS,
    k: int = RRF_K,
) -> list[RankedAgent]:
    """Returns the top agents of a list of agents and a list of tools, by standard weighted rank fusion.

    Source: Agent-as-a-Graph, section 3.2, Eq. 2::

        s(e) = sum over the two lists m of weight_m / (k + r_m(e))

    where r_m(e), counted from 1, is the rank of agent e among the agents, or among the different owners of the tools.

    Args:
        agent_list: The top N agents by similarity, best first.
        tool_list: The top N tools.
        graph: Agents and their tools.
        agents: K, maximum number of agents; None: no maximum.
        weights: The weights of the two lists.
        k: As in Eq. 2.

    Returns:
        At most K agents, each with its terms: by its own node, and by its best tool.
    """
    tool_of: dict[str, str] = {}
    for tool in tool_list:
        tool_of.setdefault(owner(graph, tool), tool)
    terms: dict[str, list[RankContribution]] = {}
    for rank, agent in enumerate(agent_list, 1):
        terms.setdefault(agent, []).append(RankContribution(agent, rank, weights["agent"], k))
    for rank, (agent, tool) in enumerate(tool_of.items(), 1):
        terms.setdefault(agent, []).append(RankContribution(tool, rank, weights["tool"], k))
    hits = reciprocal_rank_fusion([agent_list, [*tool_of]], weights=[weights["agent"], weights["tool"]], k=k)
    return [RankedAgent(hit.id, hit.score, tuple(terms[hit.id])) for hit in hits[:agents]]


AgentRanking = Literal["agent_as_a_graph", "agents_and_tools", "weighted_rrf", "agents"]


def rank_agents(
    ranking: AgentRanking,
    scores: Mapping[str, float],
    graph: KnowledgeGraph,
    *,
    n: int,
    agents: int | None,
    weights: Mapping[NodeKind, float],
    k: int,
) -> list[RankedAgent]:
    """Returns the top agents by one of the rankings that the paper compares.

    ``agent_as_a_graph`` merges the first N nodes, ``agents_and_tools`` N agents and N tools, both by Eq. 3;
    ``weighted_rrf`` fuses two lists of N by Eq. 2; ``agents`` takes the agents by their own scores.

    Args:
        ranking: Its name.
        scores: Agents and tools with their scores, best first.
        graph: Agents and their tools.
        n: N.
        agents: K, maximum number of agents; None: no maximum.
        weights: alpha of each type.
        k: As in Eq. 2 and 3.
    """
    of_type: dict[NodeKind, list[str]] = {"agent": [], "tool": []}
    for node in scores:
        of_type[kind_of(graph, node)].append(node)
    match ranking:
        case "agents":
            return [RankedAgent(agent, scores[agent]) for agent in of_type["agent"][:agents]]
        case "weighted_rrf":
            lists = of_type["agent"][:n], of_type["tool"][:n]
            return fusion_of_two_lists(*lists, graph, agents=agents, weights=weights, k=k)
        case "agents_and_tools":
            merged = first_of_each_type(list(scores), graph, n=n)
        case "agent_as_a_graph":
            merged = list(scores)[:n]
    return agent_as_a_graph(merged, graph, agents=agents, weights=weights, k=k)
