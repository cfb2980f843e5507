"""English as the rules read it: words, clauses, mood, and how steps refer to each other."""
