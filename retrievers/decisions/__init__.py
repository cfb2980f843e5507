"""Decision models, which answer a question with a choice and its probabilities instead of a text.

A decision model is LangChain's ``BaseDecisionModel``; a chat model can take its place with structured output.
"""
