"""Review: what a person accepts or rejects in the page, written where the command line writes it."""
