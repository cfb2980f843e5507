"""Deciding: the supervisor, its settings, the server's entry and the command line."""

from callsheet.orchestrator.settings import Settings
from callsheet.orchestrator.supervisor import create_retriever_app, create_supervisor

__all__ = ["Settings", "create_retriever_app", "create_supervisor"]
