"""``http.app`` of ``langgraph.json``: the explorer beside LangGraph's own routes, and what guards them all."""

from __future__ import annotations

from functools import cache

from callsheet.orchestrator.served import served
from callsheet.orchestrator.server.reports import Report, read_reports
from callsheet.orchestrator.server.routes import create_explorer
from callsheet.orchestrator.server.server_runs import ServerRuns
from callsheet.orchestrator.server.site import Site
from callsheet.orchestrator.settings import Environment


@cache
def _reports() -> tuple[Report, ...]:
    return read_reports(Environment().report_files())


_environment = Environment()
app = create_explorer(
    Site(served, _reports),
    runs=ServerRuns(),
    authenticated=True,
    hosts=_environment.host_names(),
    origins=_environment.page_origins(),
)
