"""Serves routes at ``/callsheet`` beside LangGraph's own: the explorer, metrics and health."""

from callsheet.orchestrator.run.process.process_state import Served
from callsheet.orchestrator.server.explorer.routes import create_explorer
from callsheet.orchestrator.server.visible_catalog import Site

__all__ = ["Served", "Site", "create_explorer"]
