"""``callsheet sync``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.shared_options import SERVER_TROUBLE, common, open_catalog, open_retriever

if TYPE_CHECKING:
    from callsheet.graphs import Loaded

_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
_MOST = 20


@click.command(short_help="Ask the servers for their current tools.")
@common
def sync(catalogs: tuple[str, ...], place: str | None, embeddings: str, *, yes: bool, as_json: bool) -> int:
    """Ask every server for its current tools, read every API again, and index the changes.

    A server that does not answer keeps its last known tools. Running programs update when they open a session with
    a server, and when the server announces a change.

    \b
    Example:
      callsheet sync --catalog mcp.json
    """
    began = time.monotonic()
    loaded = open_catalog(catalogs, yes=yes, tell=False, anew=True)
    retriever = open_retriever(loaded, place, embeddings)
    down = (problem.agent for problem in loaded.problems if problem.kind in SERVER_TROUBLE)
    report: dict[str, Any] = {
        "agents": len(loaded.catalog.agents),
        "tools": len(loaded.catalog.tools),
        "skills": len(loaded.catalog.skills),
        "servers": [_of(name, loaded) for name in sorted({*loaded.live, *down})],
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


def _of(name: str, loaded: Loaded) -> dict[str, Any]:
    problem = next((p for p in loaded.problems if p.agent == name and p.kind in SERVER_TROUBLE), None)
    if problem:
        down = {"kind": problem.kind, "error": problem.message, "since": loaded.down.get(name)}
        return {"agent": name, "status": "down", **down}
    return {"agent": name, "status": "ok", **asdict(loaded.live[name].difference)}


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
