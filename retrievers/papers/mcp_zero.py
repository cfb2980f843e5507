"""The hierarchical routing of MCP-Zero: servers first, then their tools."""

from __future__ import annotations

from collections.abc import Mapping

from callsheet.graphs import KnowledgeGraph, owner
from callsheet.retrievers.papers.rank_fusion import RankedNode

SERVERS = 5
"""``top_servers`` of the first stage."""


def mcp_zero(
    of_servers: Mapping[str, float], of_tools: Mapping[str, float], graph: KnowledgeGraph, *, servers: int = SERVERS
) -> list[RankedNode]:
    """Returns the tools of the first servers, by the scores of both.

    Source: MCP-Zero (arXiv 2506.01056), hierarchical routing::

        score(t) = (s_server * s_tool) * max(s_server, s_tool)

    There, a model words what it wants of a server and of a tool; here, both scores are of the query.

    Args:
        of_servers: Agent -> s_server, its cosine with the query.
        of_tools: Tool -> s_tool.
        graph: Agents and their tools.
        servers: How many servers the first stage keeps.

    Returns:
        The tools of these servers, best first; equal scores in the order of the servers.
    """
    first = sorted(of_servers, key=lambda server: -of_servers[server])[:servers]
    place = {server: at for at, server in enumerate(first)}
    hits: list[RankedNode] = []
    for tool, itself in of_tools.items():
        server = owner(graph, tool)
        if server in place:
            both = of_servers[server]
            hits.append(RankedNode(tool, both * itself * max(both, itself)))
    return sorted(hits, key=lambda hit: (-hit.score, place[owner(graph, hit.id)]))
