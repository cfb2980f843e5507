"""Plans: the types, and the planner that makes one with a model or by rules."""
