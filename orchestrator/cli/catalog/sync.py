"""``callsheet sync``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.shared_options import SERVER_TROUBLE, common, open_catalog, open_retriever
from callsheet.orchestrator.run.process.environment import Environment

if TYPE_CHECKING:
    from callsheet.agents.servers.catalogs.listings import LastKnown
    from callsheet.graphs import Loaded, ServerConfig

_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
_MOST = 20


@click.command(short_help="Ask the servers for their current tools.")
@common
def sync(catalogs: tuple[str, ...], place: str | None, embeddings: str, *, yes: bool, as_json: bool) -> int:
    """Ask every server for its current tools, and index the changes.

    A server that does not answer keeps its last known tools. Running programs update when they open a session with
    a server, and when the server announces a change.

    \b
    Example:
      callsheet sync --catalog mcp.json
    """
    from callsheet.agents.servers.catalogs.listings import LastListings
    from callsheet.graphs.catalog.loading import servers_in

    began, listings = time.monotonic(), LastListings()
    named = catalogs or Environment().catalogs()
    servers = {name: server for source in named for name, server in servers_in(source).items()}
    before = {name: listings.last(name, server) for name, server in servers.items()}
    loaded = open_catalog(catalogs, yes=yes, tell=False, anew=True)
    retriever = open_retriever(loaded, place, embeddings)
    found = [_of(name, servers[name], before[name], listings.last(name, servers[name]), loaded) for name in servers]
    report: dict[str, Any] = {
        "agents": len(loaded.catalog.agents),
        "tools": len(loaded.catalog.tools),
        "skills": len(loaded.catalog.skills),
        "servers": found,
        "quarantined": [change.id for change in loaded.changes if change.quarantines],
        "added": retriever.changes.added,
        "updated": retriever.changes.updated,
        "removed": retriever.changes.removed,
        "seconds": round(time.monotonic() - began, 3),
        "path": str(retriever.place or ""),
    }
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        for line in _lines(report):
            click.echo(line)
    return 0 if loaded.catalog.agents or loaded.catalog.skills else 1


def _of(
    name: str, server: ServerConfig, before: LastKnown | None, now: LastKnown | None, loaded: Loaded
) -> dict[str, Any]:
    from callsheet.agents.servers.catalogs.listings import difference

    problem = next((p for p in loaded.problems if p.agent == name and p.kind in SERVER_TROUBLE), None)
    said: dict[str, Any] = {"agent": name, "status": "down" if problem else "ok"}
    if problem:
        return {**said, "kind": problem.kind, "error": problem.message, "since": loaded.down.get(name)}
    if now is None:  # its answer could not be stored
        return said
    new = difference(before.listing if before else None, now.listing)
    return {**said, "added": new.added, "changed": new.changed, "removed": new.removed}


def _lines(report: Mapping[str, Any]) -> Iterable[str]:
    from callsheet.graphs import shown

    for server in report["servers"]:
        if server["status"] == "down":
            yield shown(f"{server['agent']}: down, {server['error']}")
        for word, sign in _SIGNS.items():
            names = server.get(word, ())
            for name in names[:_MOST]:
                yield shown(f"{sign} {server['agent']}/{name}")
            if len(names) > _MOST:
                yield f"{sign} {server['agent']}: {len(names) - _MOST} more"
    if report["quarantined"]:
        yield f"not used until you review them: {shown(', '.join(report['quarantined'][:_MOST]))} (callsheet approve)"
    down = sum(server["status"] == "down" for server in report["servers"])
    yield (
        f"{counted(report['agents'], 'agent')}, {counted(report['tools'], 'tool')}, {down} down: "
        f"{report['added']} added, {report['updated']} updated, {report['removed']} removed in {report['seconds']} s"
    )
