"""Deciding: the supervisor, its settings, the server's entry and the command line."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callsheet.orchestrator.arag import create_arag
    from callsheet.orchestrator.asking import create_ask_app
    from callsheet.orchestrator.middleware import CallsheetTools
    from callsheet.orchestrator.settings import Settings
    from callsheet.orchestrator.supervisor import create_retriever_app, create_supervisor

_HOME = {
    "CallsheetTools": "middleware",
    "Settings": "settings",
    "create_arag": "arag",
    "create_ask_app": "asking",
    "create_retriever_app": "supervisor",
    "create_supervisor": "supervisor",
}

__all__ = ["CallsheetTools", "Settings", "create_arag", "create_ask_app", "create_retriever_app", "create_supervisor"]


def __getattr__(name: str) -> Any:
    """Imports on first use: the command line must not wait for LangGraph to print its help."""
    if name not in _HOME:
        raise AttributeError(f"module 'callsheet.orchestrator' has no attribute {name!r}")
    return getattr(import_module(f"callsheet.orchestrator.{_HOME[name]}"), name)
