"""Commands about a catalog: one module per command."""
