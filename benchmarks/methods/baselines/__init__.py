"""Every baseline of the papers, one small function each: from a ``World`` to a ranking function."""

from __future__ import annotations

from benchmarks.methods.baselines.agents import AGENT_BASELINES, WEIGHT_GRID, agent_as_a_graph_at
from benchmarks.methods.baselines.dependencies import DEPENDENCY_BASELINES, FIRST_TOOLS, graph_rag_at
from benchmarks.methods.baselines.tools import TOOL_BASELINES

__all__ = [
    "AGENT_BASELINES",
    "DEPENDENCY_BASELINES",
    "FIRST_TOOLS",
    "TOOL_BASELINES",
    "WEIGHT_GRID",
    "agent_as_a_graph_at",
    "graph_rag_at",
]
