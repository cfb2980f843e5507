"""Chat models: by name, their prompts, and what they wrote as the state keeps it."""
