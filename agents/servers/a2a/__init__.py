"""A2A (Agent2Agent) agents: read from their agent cards, called with a step, resumed after a question."""

from callsheet.agents.servers.a2a.agent import A2AAgent

__all__ = ["A2AAgent"]
