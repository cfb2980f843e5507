"""Rules on how the catalog hangs together: what could not be loaded, dependencies, capabilities."""

from __future__ import annotations

from collections.abc import Iterator

from callsheet.graphs.catalog.finding import Severity
from callsheet.graphs.catalog.model import near_names
from callsheet.graphs.lint.lint_rule import Remark, Subject, on, quoted, rule


@rule("load-problem", Severity.ERROR, "Something was left out when the catalog was loaded.")
def load_problem(subject: Subject) -> Iterator[Remark]:
    """A server that did not answer, a malformed entry, a dependency that points nowhere."""
    for problem in subject.problems:
        agent = problem.agent if problem.agent in subject.catalog.by_id else ""
        yield Remark(problem.message if agent else str(problem), agent)


@rule("dependency-cycle", Severity.ERROR, "Direct dependencies form a cycle.")
def dependency_cycle(subject: Subject) -> Iterator[Remark]:
    """None of them can be the first to run. Indirect dependencies may go round."""
    import networkx as nx

    tools = subject.catalog.tools
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((t.id, edge.tool) for t in tools.values() for edge in t.depends_on if edge.kind.direct)
    order = {tool: place for place, tool in enumerate(tools)}
    circles = [part for part in nx.strongly_connected_components(graph) if len(part) > 1 or _own(graph, *part)]
    for part in sorted(circles, key=lambda part: min(map(order.__getitem__, part))):
        first = min(part, key=order.__getitem__)
        path = [edge[0] for edge in nx.find_cycle(graph.subgraph(part), first)]
        shown = " -> ".join([*path, path[0]])
        yield on(tools[path[0]], f"is in a circle of direct dependencies: {shown}: take one away, or make it indirect")


@rule("unknown-capability", Severity.ERROR, "A tool names a capability that is not in the taxonomy.")
def unknown_capability(subject: Subject) -> Iterator[Remark]:
    """It would count for nothing when tools are looked for by what they can do."""
    known = subject.taxonomy.by_id
    for tool in subject.catalog.tools.values():
        for name in tool.capabilities:
            if name not in known:
                yield on(tool, f"has the unknown capability {quoted(name)}{near_names(name, known)}")


def _own(graph: object, *part: str) -> bool:
    return any(graph.has_edge(tool, tool) for tool in part)  # type: ignore[attr-defined]
