"""``graph``: the neighbours of a node of the knowledge graph, and paths between nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs.text.sanitizing import shown
from callsheet.orchestrator.cli.shared_options import CatalogOptions, catalog_options, report, visible

if TYPE_CHECKING:
    from callsheet.graphs.knowledge_graph import Edge


@click.command(short_help="Show what an agent or a tool is linked to.")
@click.argument("node")
@click.option("--to", "end", metavar="NODE", help="Show the shortest path from NODE to this node instead.")
@catalog_options
def graph(options: CatalogOptions, node: str, end: str | None) -> int:
    """Show the edges of NODE: its owner, dependencies, parameters, capabilities and skills, also inferred ones.

    NODE is the id of an agent, a tool, a skill or a capability. The exit status is 1 if there is no path.

    \b
    Examples:
      callsheet graph weather/forecast --catalog manifests/
      callsheet graph travel/plan_trip --to maps --catalog manifests/ --json
    """
    from callsheet.graphs.knowledge_graph import detailed_graph, edges_at, named, shortest_path
    from callsheet.retrievers.inference import with_inferred

    loaded = options.open()
    whole = detailed_graph(with_inferred(visible(loaded), rejected=loaded.rejected, trusted=loaded.trusted))
    start = named(whole, node)
    edges = list(map(_plain, shortest_path(whole, start, named(whole, end)) if end else edges_at(whole, start)))
    content = {"node": node, **({"to": end} if end else {}), "edges": edges}
    lines = [_line(edge) for edge in edges] or [f"there is no path from {node} to {end}" if end else f"{node}: no edge"]
    report(content, shown("\n".join(lines), most=None), as_json=options.as_json)
    return 1 if end and not edges and end != node else 0


def _plain(edge: Edge) -> dict[str, Any]:
    source, target, data = edge
    dependency = data.get("dependency")
    details = dependency.model_dump(mode="json", exclude={"tool", "kind"}) if dependency else {}
    return {"source": _name(source), "target": _name(target), "kind": str(data["kind"]), **details}


def _name(node: Any) -> str:
    """The id of a node, or the name of a parameter or an output."""
    return node if isinstance(node, str) else node[1] if node[0] == "capability" else node[2]


def _line(edge: dict[str, Any]) -> str:
    about = ", ".join(filter(None, (edge.get("parameter"), edge.get("reason"))))
    line = f"{edge['source']} -[{edge['kind']}]-> {edge['target']}{f': {about}' if about else ''}"
    declared = edge.get("provenance", "declared") == "declared"
    return line if declared else f"{line} ({edge['provenance']}, {edge['confidence']:.0%} sure)"
