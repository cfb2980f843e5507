"""Beside LangGraph's own routes: the explorer, metrics and health, at ``/callsheet``."""

from callsheet.orchestrator.served import Served
from callsheet.orchestrator.server.routes import create_explorer
from callsheet.orchestrator.server.site import Site

__all__ = ["Served", "Site", "create_explorer"]
