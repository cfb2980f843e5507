"""How well this finds agents and tools, beside every baseline of the papers: ``python -m benchmarks --data DIR``."""
