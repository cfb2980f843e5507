"""Makes and revises plans with a model, and divides their steps among workers."""
