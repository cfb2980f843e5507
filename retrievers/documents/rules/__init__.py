"""A-RAG without a language model: which interface to call next, and an answer from quoted sentences."""
