"""Approval of calls: which calls need it, the question, the answer, and the one run that may act."""
