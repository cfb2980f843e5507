"""``callsheet explore`` serves the page of a catalog."""

from __future__ import annotations

import json
import secrets
from typing import Any

import click

from callsheet.orchestrator.cli.browser import open_privately
from callsheet.orchestrator.cli.shared_options import (
    CatalogOptions,
    check_model_name,
    common,
    open_calls_named,
    run_options,
)
from callsheet.orchestrator.run.process.environment import Environment


@click.command(short_help="Explore the catalog in a browser.")
@click.option("--port", default=8765, type=click.IntRange(0, 65535), help="Port of the page; 0 selects a free one.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option(
    "--user", default="", show_default=False, metavar="NAME", help="Show only what the policy grants this user."
)
@run_options
@common
def explore(options: CatalogOptions, port: int, user: str, *, no_browser: bool, **of_run: Any) -> int:
    """Serve a web page for requests and their runs, the graph of the catalog, search and review.

    Only this machine can open the page, until you press Ctrl-C. Its address contains a key, without which the page
    shows nothing. With --json, the command prints the address as one object as soon as the page is ready.

    \b
    Example:
      callsheet explore --catalog mcp.json
    """
    from starlette.responses import RedirectResponse

    from callsheet.agents import ToolRegistry
    from callsheet.graphs.dependencies import ObservationLog
    from callsheet.orchestrator.run.process.process_state import Served, ServerUpdates
    from callsheet.orchestrator.run.settings import Settings
    from callsheet.orchestrator.run.threads import Threads, sweep_threads
    from callsheet.orchestrator.server import Site, create_explorer
    from callsheet.orchestrator.server.listener import LOOPBACK, listening, serve_app
    from callsheet.orchestrator.server.runs.local_backend import LocalBackend
    from callsheet.orchestrator.server.runs.runs import Runs
    from callsheet.orchestrator.supervisor import create_supervisor

    check_model_name(of_run["model"])
    with listening(port) as listener:
        loaded = options.open()
        whole = options.retriever(loaded)
        retriever = whole.within(user)
        registry = ToolRegistry.from_catalog(loaded)
        served = Served(loaded, whole, registry, options.reader())
        parts: dict[str, Any] = {"retriever": whole, "registry": registry, "observed": ObservationLog()}
        workflow = create_supervisor(loaded, settings=Settings(**of_run), **parts)
        ServerUpdates(registry, options.reader())
        threads = Threads.of(loaded)
        key = secrets.token_urlsafe(24)
        sweep_threads()
        app = create_explorer(
            Site(lambda: served),
            runs=Runs(LocalBackend(workflow, threads, registry, retriever.user)),
            key=key,
            user=retriever.user,
            hosts=Environment().hosts,
        )
        app.add_route("/", lambda _: RedirectResponse("callsheet/"))
        url = f"http://{LOOPBACK}:{listener.getsockname()[1]}/callsheet/#key={key}"
        if options.as_json:
            found = retriever.catalog
            click.echo(json.dumps({"url": url, "agents": len(found.agents), "tools": len(found.tools)}))
        else:
            click.echo(f"{url}  (Ctrl-C stops it)", err=True)
            if not no_browser:
                open_privately(url)
        try:
            with open_calls_named(loaded):
                serve_app(app, listener)
        finally:
            registry.close()
    return 0
