"""``callsheet index``."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.shared_options import common, open_catalog, open_selector


@click.command(short_help="Update the index of a catalog.")
@common
def index(catalogs: tuple[str, ...], place: str | None, embeddings: str, *, yes: bool, as_json: bool) -> int:
    """Update the index of a catalog: embed new and changed tools, remove deleted ones.

    \b
    Example:
      callsheet index --catalog mcp.json
    """
    began = time.monotonic()
    loaded = open_catalog(catalogs, yes=yes)
    opened = open_selector(loaded, place, embeddings)
    edges = [edge for tool in opened.selector.catalog.tools.values() for edge in tool.depends_on]
    declared = sum(edge.holds for edge in edges)
    report: dict[str, Any] = {
        "agents": len(loaded.catalog.agents),
        "tools": len(loaded.catalog.tools),
        "skills": len(loaded.catalog.skills),
        "dependencies": declared,
        "inferred": len(edges) - declared,
        "added": opened.changes.added,
        "updated": opened.changes.updated,
        "removed": opened.changes.removed,
        "seconds": round(time.monotonic() - began, 3),
        "path": str(opened.place or ""),
        "down": dict(loaded.down),
        "problems": [
            {"agent": problem.agent, "kind": problem.kind, "message": problem.message} for problem in loaded.problems
        ],
    }
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        click.echo(
            f"{loaded.catalog.sizes}, "
            f"{counted(declared, 'dependency', 'dependencies')}, {report['inferred']:,} inferred: "
            f"{report['added']} added, "
            f"{report['updated']} updated, {report['removed']} removed in {report['seconds']} s\n{report['path']}"
        )
    return 0 if loaded.catalog.agents or loaded.catalog.skills else 1
