"""English for the rules: words, clauses, mood, and references between steps."""
