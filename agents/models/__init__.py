"""Chat models: construction by name, prompts, and normalised output."""
