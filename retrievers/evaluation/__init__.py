"""How well a retriever serves labelled queries: queries, metrics and error analysis."""
