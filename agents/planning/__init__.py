"""Plans: their types, and a planner that works with a model."""
