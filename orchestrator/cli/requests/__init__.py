"""Commands that take a request or serve one: one module per command."""
