"""Agents that speak A2A (Agent2Agent), on any server: found by their cards, handed a step, asked back."""

from callsheet.agents.a2a.agent import A2AAgent

__all__ = ["A2AAgent"]
