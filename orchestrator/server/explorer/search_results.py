"""What the search view and the map show: results of a query with the reasons, the list of agents, the whole catalog."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from callsheet.graphs import Provenance, Tool, dependency_edges
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.server.explorer.node_details import Neighbour, neighbour
from callsheet.orchestrator.server.visible_catalog import Link, VisibleCatalog, fit, shown_line, shown_text
from callsheet.retrievers import Evidence, PickedTool, Selection, explain_tool

PART = 60
"""Number of agents per page of the list."""
_EXAMPLES = 4
_ORIGIN = {Provenance.PROPOSED: 1, Provenance.OBSERVED: 2}
_SENTENCE = re.compile(r"[A-Z][a-z]+ [^.!?\n]{10,44}(?=[.!?\n]|$)")
_ES = ("sses", "shes", "ches", "xes", "zes", "oes")


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A selected tool.

    Attributes:
        required: Whether the tool that depends on it needs it.
        via: The tools along the dependencies that led to it, without itself.
        inferred: Evidence for the last of these dependencies, if nobody wrote or accepted it; otherwise empty.
    """

    link: Link
    why: str
    score: float
    use: float
    required: bool
    via: tuple[Link, ...]
    inferred: str = ""


@dataclass(frozen=True, slots=True)
class AgentMatch:
    """A selected agent with its tools."""

    link: Link
    why: str
    score: float
    tools: tuple[ToolMatch, ...]


@dataclass(frozen=True, slots=True)
class SkillMatch:
    """A selected skill, and how well it fits."""

    link: Link
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that the search considered: scores and ranks by meaning and by words."""

    link: Link
    score: float
    cosine: float | None
    cosine_rank: int | None
    words: float | None
    words_rank: int | None
    use: float


@dataclass(frozen=True, slots=True)
class CutTool:
    """A tool that was found and then cut."""

    link: Link
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class QueryUnit:
    """A part of the query, as the search understood it."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The results for a query, each kind best first.

    Attributes:
        fits: Whether something fits; otherwise these are only the nearest.
        asked: The parts of the query.
        strength: The best score of any agent.
        threshold: Minimum score of a fitting agent.
        considered: All considered nodes.
        cut: Tools that were cut.
        notes: Other influences: a reranker, a policy.
    """

    query: str
    fits: bool
    milliseconds: float
    agents: tuple[AgentMatch, ...]
    skills: tuple[SkillMatch, ...]
    asked: tuple[QueryUnit, ...]
    strength: float
    threshold: float
    considered: tuple[Candidate, ...]
    cut: tuple[CutTool, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """The catalog in numbers, as far as the user may see it.

    Attributes:
        user: The signed-in user; empty if anonymous.
        dependencies: Number of dependencies that a person wrote or accepted.
        inferred: Number of other dependencies.
        policy: What the policy hides, in words.
        left_out: Problems of the catalog.
        runs: Whether past runs are shown.
        asks: Whether requests can be run.
        quarantined: Number of visible changes of servers that somebody has to accept before use.
    """

    user: str
    agents: int
    tools: int
    skills: int
    dependencies: int
    inferred: int
    policy: str
    left_out: tuple[str, ...]
    runs: bool
    asks: bool
    quarantined: int


@dataclass(frozen=True, slots=True)
class Agents:
    """A page of the list of agents, each with its number of tools in ``words``, and the number of all that match."""

    total: int
    items: tuple[Neighbour, ...]


@dataclass(frozen=True, slots=True)
class CatalogMap:
    """All agents, tools and dependencies as numbers and names, in few bytes.

    Attributes:
        agents: Id of each agent.
        tools: Of each tool its name without the agent, the number of its agent, and 1 if it is a core tool.
        edges: Of each dependency the numbers of the tool and of the needed tool, and its origin: 0 declared or
            reviewed, 1 inferred, 2 observed.
        skills: Of each skill its id and the numbers of the tools that it names.
        labels: Ids that are displayed otherwise than they are.
        examples: Requests, from tools that may be called without approval.
    """

    agents: tuple[str, ...]
    tools: tuple[tuple[str, int, int], ...]
    edges: tuple[tuple[int, int, int], ...]
    skills: tuple[tuple[str, tuple[int, ...]], ...]
    labels: dict[str, str]
    examples: tuple[str, ...]


def search(visible: VisibleCatalog, query: str, *, agents: int, tools: int) -> SearchResults:
    """Finds at most this many agents and tools for a query."""
    began = time.perf_counter()
    selection = visible.retriever.select(query, agents=agents, tools=tools)
    took = 1000 * (time.perf_counter() - began)
    link, trace = visible.link, selection.trace
    evidence = {node.id: node for node in trace.nodes}
    return SearchResults(
        query=shown_text(selection.query),
        fits=selection.verdict == "found",
        milliseconds=round(took, 1),
        agents=tuple(
            AgentMatch(
                link(agent.id),
                _why(evidence.get(agent.id)),
                agent.score,
                tuple(_tool(tool, selection, visible) for tool in agent.tools),
            )
            for agent in selection.agents
        ),
        skills=tuple(SkillMatch(link(skill.id), skill.score) for skill in selection.skills),
        asked=tuple(QueryUnit(unit.kind, shown_text(unit.text)) for unit in trace.units),
        strength=trace.strength,
        threshold=float(trace.settings.get("threshold", 0.0)),
        considered=tuple(
            Candidate(link(n.id), n.score, n.cosine, n.cosine_rank, n.words, n.words_rank, n.use) for n in trace.nodes
        ),
        cut=tuple(CutTool(link(cut.id), cut.score, shown_text(cut.reason)) for cut in trace.cut),
        notes=tuple(shown_text(note) for note in (trace.reranked, trace.policy) if note),
    )


def overview(visible: VisibleCatalog, *, runs: bool, asks: bool) -> Overview:
    """The catalog in numbers."""
    catalog, everything = visible.catalog, visible.retriever.selector.catalog
    visible.knowledge.capabilities()
    held = Counter(edge.holds for _, edge in dependency_edges(visible.knowledge.graph))
    withheld = f"the policy shows {len(catalog.tools):,} of {counted(len(everything.tools), 'tool')}"
    return Overview(
        user=shown_line(visible.user.id),
        agents=len(catalog.agents),
        tools=len(catalog.tools),
        skills=len(catalog.skills),
        dependencies=held[True],
        inferred=held[False],
        policy="" if visible.whole else withheld,
        left_out=tuple(shown_text(str(problem)) for problem in visible.problems),
        runs=runs,
        asks=asks,
        quarantined=sum(change.quarantines for change in visible.reviewable),
    )


def list_agents(visible: VisibleCatalog, words: str, start: int) -> Agents:
    """A page of the list of agents: those with all these words in id, name or description, from ``start``."""
    wanted = words.casefold().split()
    texts = ((agent, f"{agent.id} {agent.name} {agent.description}".casefold()) for agent in visible.catalog.agents)
    agents = [agent for agent, text in texts if all(word in text for word in wanted)]
    part = agents[start : start + PART]
    return Agents(len(agents), tuple(neighbour(visible, one.id, "", counted(len(one.tools), "tool")) for one in part))


def catalog_map(visible: VisibleCatalog) -> CatalogMap:
    """The part of the catalog that a user may see."""
    catalog = visible.catalog
    number_of = {agent.id: number for number, agent in enumerate(catalog.agents)}
    tools = {tool: number for number, tool in enumerate(catalog.tools)}
    labels = {node: shown_line(node) for node in (*number_of, *tools, *catalog.skills_by_id)}
    return CatalogMap(
        agents=tuple(number_of),
        tools=tuple((tool.name, number_of[tool.agent], int(tool.core)) for tool in catalog.tools.values()),
        edges=tuple(
            (tools[tool], tools[edge.tool], _ORIGIN.get(edge.provenance, 0))
            for tool, edge in dependency_edges(visible.knowledge.graph)
        ),
        skills=tuple(
            (skill.id, tuple(tools[tool] for tool in skill.tools if tool in tools)) for skill in catalog.skills
        ),
        labels={node: label for node, label in labels.items() if node != label},
        examples=tuple(dict.fromkeys(_examples(visible)))[:_EXAMPLES],
    )


def _tool(tool: PickedTool, selection: Selection, visible: VisibleCatalog) -> ToolMatch:
    via = tuple(visible.link(node) for node in tool.via[:-1])
    reason = explain_tool(tool.id, selection)
    why = shown_text(reason if via else f"{fit(tool.score)}: {reason}")
    return ToolMatch(visible.link(tool.id), why, tool.score, tool.use, tool.required, via, shown_line(tool.inferred))


def _why(known: Evidence | None) -> str:
    """Why an agent was selected; because of its tools if it is not in the trace itself."""
    if known is None:
        return "by its tools"
    reasons = [] if known.cosine is None else [f"meaning {known.cosine:.2f} (#{known.cosine_rank})"]
    if known.words is not None:
        reasons.append(f"words {known.words:.1f} (#{known.words_rank})")
    return ", ".join(reasons)


def _examples(visible: VisibleCatalog) -> Iterator[str]:
    """One request an agent, from a tool that may be called without approval."""
    for agent in visible.catalog.agents:
        for tool in agent.tools:
            known = visible.registry.assurance(tool.id)
            if known.callable and not known.why("risky") and (request := _request(tool)):
                yield request
                break


def _request(tool: Tool) -> str:
    """The first sentence of a description as an order: "Converts a length." -> "Convert a length"; or nothing."""
    match = _SENTENCE.match(tool.description.strip())
    if match is None:
        return ""
    verb, _, rest = match[0].partition(" ")
    if verb.endswith("ies"):
        verb = f"{verb[:-3]}y"
    elif verb.endswith(_ES):
        verb = verb[:-2]
    elif verb.endswith("s") and not verb.endswith("ss"):
        verb = verb[:-1]
    return shown_line(f"{verb} {rest}")
