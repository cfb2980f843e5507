"""Callsheet: for every step of a request, the agents it needs and which of their tools.

Everything public is imported when it is first used, so that ``import callsheet`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callsheet.agents import A2AAgent, Plan, Prompts, Step, StepResult, ToolRegistry
    from callsheet.graphs import (
        Agent,
        CallsheetError,
        Catalog,
        CatalogError,
        Dependency,
        DependencyKind,
        Parameter,
        Policy,
        Tool,
        TrustError,
        User,
        load,
    )
    from callsheet.orchestrator import (
        CallsheetTools,
        Settings,
        create_arag,
        create_ask_app,
        create_retriever_app,
        create_supervisor,
    )
    from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings, Selection, SelectSettings

_HOME = {
    "agents": ("A2AAgent", "Plan", "Prompts", "Step", "StepResult", "ToolRegistry"),
    "graphs": (
        "Agent",
        "CallsheetError",
        "Catalog",
        "CatalogError",
        "Dependency",
        "DependencyKind",
        "Parameter",
        "Policy",
        "Tool",
        "TrustError",
        "User",
        "load",
    ),
    "orchestrator": (
        "CallsheetTools",
        "Settings",
        "create_arag",
        "create_ask_app",
        "create_retriever_app",
        "create_supervisor",
    ),
    "retrievers": ("AgentGraphRetriever", "MiniLMEmbeddings", "SelectSettings", "Selection"),
}

__version__ = "0.1.0"
__all__ = [
    "A2AAgent",
    "Agent",
    "AgentGraphRetriever",
    "CallsheetError",
    "CallsheetTools",
    "Catalog",
    "CatalogError",
    "Dependency",
    "DependencyKind",
    "MiniLMEmbeddings",
    "Parameter",
    "Plan",
    "Policy",
    "Prompts",
    "SelectSettings",
    "Selection",
    "Settings",
    "Step",
    "StepResult",
    "Tool",
    "ToolRegistry",
    "TrustError",
    "User",
    "create_arag",
    "create_ask_app",
    "create_retriever_app",
    "create_supervisor",
    "load",
]


def __getattr__(name: str) -> Any:
    for package, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"callsheet.{package}"), name)
    raise AttributeError(f"module 'callsheet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
