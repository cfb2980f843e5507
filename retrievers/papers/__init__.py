"""The algorithms as published, one module per paper, with equations and line numbers."""
