"""Asks models of LangChain for decisions: decision models, and chat models that answer in their form."""
