"""OpenAPI 3.0 and 3.1: a specification read as agents by tag and tools by operation. Nothing here sends anything."""
