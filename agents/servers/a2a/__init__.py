"""A2A (Agent2Agent) agents: read from their agent cards, called with a step, resumed after a question."""
