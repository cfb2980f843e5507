"""Makes chat models by their names, has the prompts, and normalises what models answer."""
