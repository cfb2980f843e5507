"""The index of agents and tools: vectors and words.

`protocols` has the protocols that users can implement. Only this room uses Chroma.
"""
