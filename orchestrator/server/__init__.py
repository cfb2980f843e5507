"""Beside LangGraph's own routes: the explorer, metrics and health, at ``/callsheet``."""

from callsheet.orchestrator.run.process.process_state import Served
from callsheet.orchestrator.server.explorer.routes import create_explorer
from callsheet.orchestrator.server.explorer.site import Site

__all__ = ["Served", "Site", "create_explorer"]
