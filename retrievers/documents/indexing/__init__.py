"""The index of a folder of documents: exact text, keywords and vectors."""
