"""Calls A2A (Agent2Agent) agents: reads their agent cards, sends them steps, and resumes after their questions."""
