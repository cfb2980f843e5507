"""The model of a catalog: agents, tools, parameters and dependencies, validated once, without a process or a model."""
