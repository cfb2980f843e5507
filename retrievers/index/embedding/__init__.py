"""Text to vectors: the embedded model, and others by their LangChain names."""
