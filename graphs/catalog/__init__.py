"""Agents, tools, parameters and dependencies, read from outside and validated once, without a process or a model."""
