"""Resources, resource templates and prompts of the servers behind the gateway."""
