"""One module per measurement."""
