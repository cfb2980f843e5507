"""Taxonomies of what tools can do; ``retrievers.capabilities`` finds which tool has which capability."""
