"""The taxonomy of capabilities: what tools can do, from broad to narrow.

The taxonomy and its reader. Which tool has which capability is found by ``retrievers.capabilities``.
"""
