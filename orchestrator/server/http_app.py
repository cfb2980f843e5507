"""The ``http.app`` of ``langgraph.json``: the explorer beside LangGraph's own routes, and the guards of all routes."""

from __future__ import annotations

from callsheet.orchestrator.run.process.environment import Environment
from callsheet.orchestrator.run.process.process_state import served_catalog
from callsheet.orchestrator.server.explorer.routes import create_explorer
from callsheet.orchestrator.server.runs.runs import Runs
from callsheet.orchestrator.server.runs.server_backend import ServerBackend
from callsheet.orchestrator.server.visible_catalog import Site

_environment = Environment()
app = create_explorer(
    Site(served_catalog),
    runs=Runs(ServerBackend()),
    authenticated=True,
    hosts=_environment.hosts,
    origins=_environment.origins,
)
