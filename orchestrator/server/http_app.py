"""``http.app`` of ``langgraph.json``: the explorer beside LangGraph's own routes, and the guards for all routes."""

from __future__ import annotations

from functools import cache

from callsheet.agents import read_prices
from callsheet.orchestrator.run.process.environment import Environment
from callsheet.orchestrator.run.process.process_state import served
from callsheet.orchestrator.server.explorer.answers.reports import Report, read_reports
from callsheet.orchestrator.server.explorer.routes import create_explorer
from callsheet.orchestrator.server.explorer.site import Site
from callsheet.orchestrator.server.runs.server_runner import ServerRunner
from callsheet.orchestrator.server.runs.stores.server_runs import ServerRuns


@cache
def _reports() -> tuple[Report, ...]:
    return read_reports(Environment().report_files())


_environment = Environment()
app = create_explorer(
    Site(served, _reports, read_prices(_environment.price_file())),
    runs=ServerRuns(),
    runner=ServerRunner(),
    authenticated=True,
    hosts=_environment.host_names(),
    origins=_environment.page_origins(),
)
