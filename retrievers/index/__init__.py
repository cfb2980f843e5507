"""The index of agents and tools, by vectors and by words.

``node_texts`` has the protocol that users can implement. Only this package uses Chroma.
"""
