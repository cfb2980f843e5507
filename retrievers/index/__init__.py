"""The index that a selection searches: vectors and words of agents and tools.

The protocols that a user may implement are in `protocols`; Chroma appears only here.
"""
