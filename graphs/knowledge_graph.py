"""The knowledge graph of a catalog, and the functions that follow its edges.

Its nodes are the ids of agents, tools and skills; ``detailed_graph`` adds parameters, outputs and capabilities.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from callsheet.graphs.capabilities.taxonomy import Capability, shipped_capabilities
from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, DependencyKind, Parameter, Provenance, Skill
from callsheet.graphs.errors import lookup

if TYPE_CHECKING:
    # It takes a fifth of a second, so it is imported where a graph is made or searched, and not with the types.
    import networkx as nx

KnowledgeGraph: TypeAlias = "nx.MultiDiGraph[Any]"
"""The type of the graph: each node and edge has the attribute ``kind``, and each dependency also ``dependency``."""
NodeKind = Literal["agent", "tool"]
_INDIRECT = 0.5  # how likely an optional argument is filled


class Relation(StrEnum):
    """The kinds of edges other than dependencies, whose kinds are in ``DependencyKind``.

    Source: Agent-as-a-Graph, section 3.1 (owned by); Representing Agentic Tools in Knowledge Graphs (inputs and
    capabilities); outputs and skills are ours.
    """

    OWNED_BY = "owned_by"
    USES = "uses"
    HAS_REQUIRED_INPUT = "has_required_input"
    HAS_OPTIONAL_INPUT = "has_optional_input"
    HAS_OUTPUT = "has_output"
    HAS_CAPABILITY = "has_capability"
    PARENT = "parent"


@dataclass(frozen=True, slots=True)
class Reached:
    """A tool that a walk along dependencies has reached.

    Attributes:
        path: Tool ids from the start of the walk to this tool, both included.
        direct: Whether the start requires this tool: a path of required dependencies leads to it.
    """

    tool: str
    path: tuple[str, ...]
    direct: bool


def knowledge_graph(catalog: Catalog) -> KnowledgeGraph:
    """Returns the graph of agents, tools and skills; it is built on first use and then cached with the catalog.

    Source: Agent-as-a-Graph, section 3.1, and Graph RAG-Tool Fusion, section 3.1.
    """
    graph = catalog.derived.get("graph")
    if graph is None:
        import networkx as nx

        graph = nx.freeze(graph_of(catalog.agents, catalog.skills))
        catalog.derived["graph"] = graph
    return cast("KnowledgeGraph", graph)


def graph_of(agents: Iterable[Agent], skills: Iterable[Skill] = ()) -> KnowledgeGraph:
    """Builds the knowledge graph; the key of a dependency is its position in the list of its tool."""
    import networkx as nx

    graph: KnowledgeGraph = nx.MultiDiGraph()
    tools = []
    # Tools may depend on tools of later agents, so all nodes are added before the dependencies.
    for agent in agents:
        always = tuple(tool.id for tool in agent.tools if tool.always)
        graph.add_node(agent.id, kind="agent", always=always)
        for tool in agent.tools:
            graph.add_node(tool.id, kind="tool", core=tool.core)
            graph.add_edge(tool.id, agent.id, kind=Relation.OWNED_BY)
            tools.append(tool)
    for tool in tools:
        for place, edge in enumerate(tool.depends_on, 1):
            graph.add_edge(tool.id, edge.tool, key=place, kind=edge.kind, dependency=edge)
    for skill in skills:
        graph.add_node(skill.id, kind="skill")
        graph.add_edges_from((skill.id, tool, {"kind": Relation.USES}) for tool in skill.tools)
    return graph


def restrict_graph(part: Catalog, whole: Catalog) -> Catalog:
    """Sets the graph of a part of a catalog to a view of the whole graph, without paths to hidden nodes."""
    import networkx as nx

    nodes = frozenset((*part.by_id, *part.tools, *part.skills_by_id))
    part.derived["graph"] = nx.subgraph_view(knowledge_graph(whole), filter_node=nodes.__contains__)
    return part


def kind_of(graph: KnowledgeGraph, node: str) -> NodeKind:
    """Returns the kind of a node: agent or tool."""
    return cast("NodeKind", graph.nodes[node]["kind"])


def owner(graph: KnowledgeGraph, node: str) -> str:
    """Returns the id of the agent that owns a node; an agent owns itself."""
    for _, agent, data in graph.out_edges(node, data=True):
        if data["kind"] is Relation.OWNED_BY:
            return cast("str", agent)
    return node


def dependency_edges(graph: KnowledgeGraph) -> Iterator[tuple[str, Dependency]]:
    """Yields all dependencies, each with the id of the tool that depends on the other."""
    for tool, _, data in graph.edges(data=True):
        if "dependency" in data:
            yield tool, data["dependency"]


def dependency_counts(graph: KnowledgeGraph) -> dict[str, int]:
    """Counts all dependencies by origin.

    Returns:
        ``dependencies``: those that a person declared or accepted; ``inferred`` and ``observed``: the others.
    """
    origins = Counter(edge.provenance for _, edge in dependency_edges(graph))
    return {
        "dependencies": origins[Provenance.DECLARED] + origins[Provenance.REVIEWED],
        "inferred": origins[Provenance.PROPOSED],
        "observed": origins[Provenance.OBSERVED],
    }


def needs(graph: KnowledgeGraph, tool: str) -> list[Dependency]:
    """Returns the dependencies of one tool, in the order of its list.

    Raises:
        UnknownNameError: The graph has no such tool.
    """
    edges = dict[int, Dependency]()
    for parallel in lookup(graph.adj, tool, "tool", "catalog").values():
        for key, data in parallel.items():
            if "dependency" in data:
                edges[int(key)] = data["dependency"]  # the key is the place in the list
    return [edges[place] for place in sorted(edges)]


def needed_by(graph: KnowledgeGraph, tool: str) -> list[tuple[str, Dependency]]:
    """Returns the tools that depend on one tool, each with its dependency."""
    return [(other, data["dependency"]) for other, _, data in graph.in_edges(tool, data=True) if "dependency" in data]


def used_by(graph: KnowledgeGraph, tool: str) -> list[str]:
    """Returns the ids of the skills that name a tool."""
    return [skill for skill, _, data in graph.in_edges(tool, data=True) if data["kind"] is Relation.USES]


def _depth_first(start: str, following: Callable[[str], Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Returns the tools that one leads to, with their paths, depth first; the order of those that follow counts."""
    paths: dict[str, tuple[str, ...]] = {start: (start,)}
    # A stack of iterators instead of recursion: a chain of dependencies may be longer than Python's stack.
    stack = [(start, iter(following(start)))]
    while stack:
        tool, siblings = stack[-1]
        other = next(siblings, None)
        if other is None:
            stack.pop()
        elif other not in paths:
            paths[other] = (*paths[tool], other)
            stack.append((other, iter(following(other))))
    del paths[start]
    return paths


def required_paths(graph: KnowledgeGraph, start: str) -> dict[str, tuple[str, ...]]:
    """Returns the tools that one tool requires, directly or through others, with their paths, depth first.

    Tools that come with every tool of their agent (``Tool.always``) are required too.
    """

    def following(tool: str) -> Iterator[str]:
        yield from (edge.tool for edge in needs(graph, tool) if edge.required)
        yield from always_beside(graph, tool)

    return _depth_first(start, following)


def always_beside(graph: KnowledgeGraph, tool: str) -> Iterator[str]:
    """Yields the tools of the same agent that come with every tool of it, as far as the graph shows them."""
    for other in graph.nodes[owner(graph, tool)].get("always", ()):
        if other != tool and other in graph:
            yield other


def walk(
    graph: KnowledgeGraph, start: str, *, direct_first: bool = True, proposed: bool = False
) -> tuple[Reached, ...]:
    """Walks along dependencies depth first, and returns the other tools in the order of their first visit.

    Source: Graph RAG-Tool Fusion, Algorithm 1, the function DFS.

    Args:
        graph: The tools with their dependencies.
        start: Id of the tool where the walk starts; ``UnknownNameError`` if there is none.
        direct_first: Visit the direct dependencies of a tool before its indirect ones. The paper
            uses their order in the list, so that a limit can drop a required tool after an optional one.
        proposed: Whether to follow proposed and observed dependencies too.
    """

    def siblings(tool: str) -> list[str]:
        edges = [edge for edge in needs(graph, tool) if proposed or edge.holds]
        if direct_first:
            edges.sort(key=lambda edge: not edge.kind.direct)
        return [edge.tool for edge in edges]

    required = required_paths(graph, start)
    paths = _depth_first(start, siblings)
    return tuple(Reached(tool, path, tool in required) for tool, path in paths.items())


def strongest(
    graph: KnowledgeGraph,
    start: str,
    weights: Mapping[DependencyKind, float],
    *,
    listing: float = 1.0,
    proposed: float = 0.0,
    inferred: bool = True,
) -> tuple[tuple[Reached, float], ...]:
    """Returns the dependencies of one tool with the weights of their strongest paths.

    These are the shortest paths over ``-log`` weights.

    ::

        W(start -> t) = max over paths from start to t of the product over their edges of
                        weight(kind of the edge) * listing ** (how many its tool lists before it)

    The weight of an edge that no person wrote or accepted is multiplied by::

        proposed * confidence ** 2 * (.5 if it is indirect)
                 * product over the sources of the same argument that are listed before it of (1 - their confidence)

    since an optional argument is often left out, and one source of an argument is enough.

    The tools are in the order of the walk. Of paths of equal weight, the first one listed counts.

    Args:
        graph: The tools with their dependencies.
        start: Id of the tool; ``UnknownNameError`` if there is none.
        weights: Weight of an edge by its kind, at most 1, so that cycles never increase a weight.
        listing: Factor for each dependency listed earlier: authors list important ones first.
        proposed: Factor for dependencies that no person wrote or accepted; 0 leaves them out.
        inferred: Whether dependencies count that are only inferred; those that were observed in runs always count.
    """
    import networkx as nx

    @cache
    def factors(tool: str) -> Mapping[str, list[tuple[float, float, float]]]:
        """Returns the factors of each edge of a tool, by the other tool."""
        places: dict[str, int] = {}
        result = defaultdict[str, list[tuple[float, float, float]]](list)
        for edge, worth in _worths(needs(graph, tool), proposed):
            if worth and (inferred or edge.provenance is not Provenance.PROPOSED):
                place = places.setdefault(edge.tool, len(places))
                result[edge.tool].append((worth, weights[edge.kind], listing**place))
        return result

    def along(weight: float, tool: str, other: str) -> float:
        """Returns the weight of a path that goes on by the strongest of the parallel edges."""
        return max((weight * a * b * c for a, b, c in factors(tool).get(other, ())), default=0.0)

    def length(tool: str, other: str, _: object) -> float | None:
        weight = along(1.0, tool, other)
        return -math.log(weight) if weight else None

    reached = walk(graph, start, direct_first=False, proposed=proposed > 0)
    if not reached:
        return ()
    paths = nx.single_source_dijkstra_path(graph, start, weight=length)
    best = []
    for one in reached:
        path = paths.get(one.tool)
        if path:
            weight = 1.0
            for tool, other in pairwise(path):
                weight = along(weight, tool, other)
            best.append((Reached(one.tool, tuple(path), one.direct), weight))
    return tuple(best)


def _worths(edges: Iterable[Dependency], proposed: float) -> Iterator[tuple[Dependency, float]]:
    """Yields each dependency with its factor: 1 if a person wrote or accepted it."""
    unfilled: dict[str, float] = {}
    for edge in edges:
        if edge.holds:
            yield edge, 1.0
            continue
        worth = proposed * edge.confidence**2 * (1 if edge.kind.direct else _INDIRECT)
        if edge.parameter:
            left = unfilled.get(edge.parameter, 1.0)
            worth *= left
            unfilled[edge.parameter] = left * (1 - edge.confidence)
        yield edge, worth


def evidence(graph: KnowledgeGraph, path: Sequence[str]) -> str:
    """Returns the evidence for the last dependency of a path.

    It is empty if a person wrote or accepted the dependency, or if the path goes from a skill to a tool.
    """
    if len(path) < 2:
        return ""
    parallel: Any = graph.get_edge_data(path[-2], path[-1], default={})
    edges = [parallel[key]["dependency"] for key in sorted(parallel) if "dependency" in parallel[key]]
    if not edges or any(edge.holds for edge in edges):
        return ""
    reason: str = edges[0].reason
    return reason


def requiring(graph: KnowledgeGraph, tools: Collection[str]) -> set[str]:
    """Returns the ids of these tools and of all tools that require one of them, directly or through others."""
    import networkx as nx

    backwards = nx.DiGraph((edge.tool, tool) for tool, edge in dependency_edges(graph) if edge.required)
    return set(tools).union(*nx.bfs_layers(backwards, [tool for tool in backwards if tool in tools]))


def cycles(edges: Iterable[tuple[str, str]]) -> list[nx.DiGraph[str]]:
    """Returns the groups of nodes that form cycles: within a group, every node leads to every other, or to itself."""
    import networkx as nx

    graph = nx.DiGraph(edges)
    parts = []
    for nodes in nx.strongly_connected_components(graph):
        some_node = next(iter(nodes))
        if len(nodes) > 1 or graph.has_edge(some_node, some_node):
            parts.append(graph.subgraph(nodes))
    return parts


def cycle_from(part: nx.DiGraph[str], start: str, second: str | None = None) -> list[str]:
    """Returns the ids along a cycle within a group of ``cycles``; it begins and ends with ``start``."""
    import networkx as nx

    if second is not None:
        return [start, *nx.shortest_path(part, second, start)]
    return [*(edge[0] for edge in nx.find_cycle(part, start)), start]


def detailed_graph(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> KnowledgeGraph:
    """Returns the knowledge graph with parameters, outputs and capabilities as nodes too.

    Tools of one agent share the node of equal parameters: those with the same name, type, description, enum, format and
    default. Whether a tool requires a parameter is the kind of the edge.

    Of the ``taxonomy`` (None: the shipped ones), there are the capabilities of the tools and all broader ones. The
    further nodes are tuples, since any text can be the id of an agent: ``("capability", id)``, and
    ``("parameter", agent, name, digest)`` or ``("output", ...)``. Their attribute ``record`` is the ``Parameter``, or
    the ``Capability``, which is None if it is not in the taxonomy.

    Source: Representing Agentic Tools in Knowledge Graphs; outputs and the hierarchy of capabilities are ours.
    """
    graph = knowledge_graph(catalog).copy()
    for tool in catalog.tools.values():
        fields = list[tuple[Parameter, str, Relation]]()
        for parameter in tool.parameters:
            kind = Relation.HAS_REQUIRED_INPUT if parameter.required else Relation.HAS_OPTIONAL_INPUT
            fields.append((parameter, "parameter", kind))
        fields.extend((output, "output", Relation.HAS_OUTPUT) for output in tool.outputs)
        for field, role, kind in fields:
            node = field_node(tool.agent, field, role)
            graph.add_node(node, kind=role, record=field)
            graph.add_edge(tool.id, node, kind=kind)
    _add_capabilities(graph, catalog, shipped_capabilities() if taxonomy is None else taxonomy)
    return graph


def field_node(agent: str, field: Parameter, role: str) -> tuple[str, str, str, str]:
    """Returns the node of a parameter or an output of an agent's tools; equal fields of one agent share it."""
    meaning = [field.name, field.type, field.description, field.enum, field.format, field.default]
    text = json.dumps(meaning, default=repr)
    return role, agent, field.name, hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def _add_capabilities(graph: KnowledgeGraph, catalog: Catalog, taxonomy: Sequence[Capability]) -> None:
    """Adds the capabilities of the tools and all broader ones, with their edges."""
    assigned = list[tuple[str, str]]()
    for tool in catalog.tools.values():
        assigned.extend((tool.id, name) for name in dict.fromkeys(tool.capabilities))
    names = [name for _, name in assigned]
    used = _with_broader(names, taxonomy)

    # Names that the taxonomy does not have are nodes too, without a record.
    names += [capability.broader for capability in used if capability.broader is not None]
    graph.add_nodes_from((("capability", name) for name in names), kind="capability", record=None)
    for capability in used:
        graph.add_node(("capability", capability.id), kind="capability", record=capability)

    for tool_id, name in assigned:
        graph.add_edge(tool_id, ("capability", name), kind=Relation.HAS_CAPABILITY)
    for capability in used:
        if capability.broader is not None:
            source = ("capability", capability.id)
            target = ("capability", capability.broader)
            graph.add_edge(source, target, kind=Relation.PARENT)


def _with_broader(names: Iterable[str], taxonomy: Sequence[Capability]) -> list[Capability]:
    """Returns the capabilities of these ids and all broader ones, in the order of the taxonomy."""
    broader = {capability.id: capability.broader for capability in taxonomy}
    ids = set[str]()
    for name in names:
        capability_id: str | None = name
        while capability_id is not None and capability_id not in ids:
            ids.add(capability_id)
            capability_id = broader.get(capability_id)
    return [capability for capability in taxonomy if capability.id in ids]


Edge: TypeAlias = tuple[Any, Any, Mapping[str, Any]]
"""An edge: source, target and attributes."""


def find_node(graph: KnowledgeGraph, name: str) -> Any:
    """Returns the agent, tool or skill with this id, otherwise the capability with this id.

    Raises:
        UnknownNameError: There is none; the message suggests similar ids.
    """
    nodes = dict[str, Any]()
    for node, data in graph.nodes(data=True):
        if data["kind"] == "capability":
            nodes[node[1]] = node
    # The id of an agent, a tool or a skill goes before that of a capability.
    nodes.update((node, node) for node in graph if isinstance(node, str))
    return lookup(nodes, name, "node", "knowledge graph")


def edges_at(graph: KnowledgeGraph, node: Any) -> list[Edge]:
    """Returns the edges from a node, then those to it."""
    return [*graph.out_edges(node, data=True), *graph.in_edges(node, data=True)]


def node_name(node: Any) -> str:
    """Returns the id of a node, or the name of a parameter or an output."""
    if isinstance(node, str):
        return node
    kind, *rest = node
    return str(rest[0] if kind == "capability" else rest[1])


def edge_values(edge: Edge) -> dict[str, Any]:
    """Returns an edge as JSON values: ``source``, ``target``, ``kind``, and the details of a dependency."""
    source, target, data = edge
    dependency = data.get("dependency")
    details = dependency.model_dump(mode="json", exclude={"tool", "kind"}) if dependency else {}
    return {"source": node_name(source), "target": node_name(target), "kind": str(data["kind"]), **details}


def edge_line(edge: Edge) -> str:
    """Returns an edge as one line, with the parameter, the reason and the confidence of a dependency.

    For example ``weather/forecast -[owned_by]-> weather``.
    """
    values = edge_values(edge)
    line = f"{values['source']} -[{values['kind']}]-> {values['target']}"
    about = ", ".join(filter(None, (values.get("parameter"), values.get("reason"))))
    if about:
        line += f": {about}"
    if values.get("provenance", "declared") != "declared":
        line += f" ({values['provenance']}, {values['confidence']:.0%} sure)"
    return line


def shortest_path(graph: KnowledgeGraph, start: Any, end: Any) -> list[Edge]:
    """Returns the edges of the shortest path from one node to another; none if there is no path."""
    import networkx as nx

    if not nx.has_path(graph, start, end):
        return []
    edges = list[Edge]()
    for source, target in pairwise(nx.shortest_path(graph, start, end)):
        first_parallel = next(iter(graph[source][target].values()))
        edges.append((source, target, first_parallel))
    return edges
