"""The index of agents and tools: vectors and words.

`node_texts` has the protocol that users can implement. Only this room uses Chroma.
"""
