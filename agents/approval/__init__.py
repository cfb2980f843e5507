"""Calls that a person is asked about: who must be asked, the question, the answer, and the one run that may act."""
