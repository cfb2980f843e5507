"""Rules on the structure of the catalog: problems of loading, dependencies, capabilities."""

from __future__ import annotations

from collections.abc import Iterator

from callsheet.graphs.catalog.errors import near_names
from callsheet.graphs.catalog.finding import Severity
from callsheet.graphs.lint.lint_rule import Remark, Subject, on, quoted, rule


@rule("load-problem", Severity.ERROR, "Something was left out when the catalog was loaded.")
def load_problem(subject: Subject) -> Iterator[Remark]:
    """For example a server that did not answer, a malformed entry, or a dependency on an unknown tool."""
    for problem in subject.problems:
        agent = problem.agent if problem.agent in subject.catalog.by_id else ""
        yield Remark(problem.message if agent else str(problem), agent)


@rule("dependency-cycle", Severity.ERROR, "Direct dependencies form a cycle.")
def dependency_cycle(subject: Subject) -> Iterator[Remark]:
    """None of the tools can run first. Cycles of indirect dependencies are allowed."""
    import networkx as nx

    tools = subject.catalog.tools
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((t.id, edge.tool) for t in tools.values() for edge in t.depends_on if edge.kind.direct)
    order = {tool: place for place, tool in enumerate(tools)}
    components = (sorted(part, key=order.__getitem__) for part in nx.strongly_connected_components(graph))
    cyclic = [part for part in components if len(part) > 1 or graph.has_edge(part[0], part[0])]
    for part in sorted(cyclic, key=lambda part: order[part[0]]):
        path = [edge[0] for edge in nx.find_cycle(graph.subgraph(part), part[0])]
        cycle = " -> ".join([*path, path[0]])
        yield on(tools[path[0]], f"is in a cycle of direct dependencies: {cycle}: remove one, or make it indirect")


@rule("unknown-capability", Severity.ERROR, "A tool names a capability that is not in the taxonomy.")
def unknown_capability(subject: Subject) -> Iterator[Remark]:
    """Retrieval by capabilities ignores it."""
    known = subject.taxonomy.by_id
    for tool in subject.catalog.tools.values():
        for name in tool.capabilities:
            if name not in known:
                yield on(tool, f"has the unknown capability {quoted(name)}{near_names(name, known)}")
