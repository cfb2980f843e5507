"""Selected agents, tools and skills for a query, with the reasons."""

from __future__ import annotations

import time
from dataclasses import dataclass

from callsheet.graphs import Catalog
from callsheet.orchestrator.server.explorer.answers.json_answers import (
    Link,
    Neighbour,
    NodeName,
    shown_line,
    shown_text,
)
from callsheet.orchestrator.server.explorer.site import Seen
from callsheet.retrievers import Cut, Evidence, PickedAgent, PickedTool, Selection, explain_tool

_WELL, _MAYBE = 0.6, 0.3


@dataclass(frozen=True, slots=True)
class FoundTool:
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
class FoundAgent:
    """A selected agent with its tools."""

    link: Link
    why: str
    score: float
    tools: tuple[FoundTool, ...]


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A selected skill, and how well it fits."""

    link: Link
    score: float


@dataclass(frozen=True, slots=True)
class Considered:
    """A node that the search considered: scores and ranks by meaning and by words."""

    link: Link
    score: float
    cosine: float | None
    cosine_rank: int | None
    words: float | None
    words_rank: int | None
    use: float


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that was found and then cut."""

    link: Link
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A part of the query, as the search understood it."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """The results for a query.

    Attributes:
        query: The query.
        fits: Whether something fits; otherwise these are only the nearest.
        milliseconds: Duration of the search.
        agents: The agents, best first.
        skills: The skills, best first.
        asked: The parts of the query.
        strength: The best score of any agent.
        threshold: Minimum score of a fitting agent.
        considered: All considered nodes, best first.
        cut: Tools that were cut.
        notes: Other influences: a reranker, a policy.
    """

    query: str
    fits: bool
    milliseconds: float
    agents: tuple[FoundAgent, ...]
    skills: tuple[FoundSkill, ...]
    asked: tuple[Asked, ...]
    strength: float
    threshold: float
    considered: tuple[Considered, ...]
    cut: tuple[LeftOut, ...]
    notes: tuple[str, ...]


def search(seen: Seen, query: str, *, agents: int, tools: int) -> Found:
    """Finds at most this many agents and tools for a query."""
    began = time.perf_counter()
    selection = seen.retriever.select(query, agents=agents, tools=tools)
    took = 1000 * (time.perf_counter() - began)
    catalog, trace = seen.catalog, selection.trace
    evidence = {node.id: node for node in trace.nodes}
    return Found(
        query=shown_text(selection.query),
        fits=selection.verdict == "found",
        milliseconds=round(took, 1),
        agents=tuple(_agent(agent, selection, catalog, evidence.get(agent.id)) for agent in selection.agents),
        skills=tuple(FoundSkill(link(skill.id, catalog), skill.score) for skill in selection.skills),
        asked=tuple(Asked(unit.kind, shown_text(unit.text)) for unit in trace.units),
        strength=trace.strength,
        threshold=float(trace.settings.get("threshold", 0.0)),
        considered=tuple(_considered(node, catalog) for node in trace.nodes),
        cut=tuple(_cut(cut, catalog) for cut in trace.cut),
        notes=tuple(shown_text(note) for note in (trace.reranked, trace.policy) if note),
    )


def fit(score: float) -> str:
    """How well something fits a text, in words."""
    return "fits well" if score >= _WELL else "may fit" if score >= _MAYBE else "is near, but hardly fits"


def link(node: str, catalog: Catalog) -> Link:
    """A link to an agent, a tool or a skill, with the first line of its description."""
    kind: NodeName = "tool" if node in catalog.tools else "skill" if node in catalog.skills_by_id else "agent"
    known = catalog.tools.get(node) or catalog.skills_by_id.get(node) or catalog.by_id.get(node)
    return Link(node, shown_line(node), kind, shown_line(known.description) if known else "")


def beside(node: str, catalog: Catalog, relation: str, words: str, *, unreviewed: bool = False) -> Neighbour:
    """An agent, a tool or a skill as a neighbour."""
    to = link(node, catalog)
    return Neighbour(to.id, to.label, to.kind, to.about, relation=relation, words=words, unreviewed=unreviewed)


def _agent(agent: PickedAgent, selection: Selection, catalog: Catalog, known: Evidence | None) -> FoundAgent:
    tools = tuple(_tool(tool, selection, catalog) for tool in agent.tools)
    return FoundAgent(link(agent.id, catalog), _why(known), agent.score, tools)


def _tool(tool: PickedTool, selection: Selection, catalog: Catalog) -> FoundTool:
    via = tuple(link(node, catalog) for node in tool.via[:-1])
    told = explain_tool(tool.id, selection)
    why = shown_text(told if via else f"{fit(tool.score)}: {told}")
    return FoundTool(link(tool.id, catalog), why, tool.score, tool.use, tool.required, via, shown_line(tool.inferred))


def _why(known: Evidence | None) -> str:
    """Why an agent was selected; because of its tools if it is not in the trace itself."""
    if known is None:
        return "by its tools"
    said = [] if known.cosine is None else [f"meaning {known.cosine:.2f} (#{known.cosine_rank})"]
    if known.words is not None:
        said.append(f"words {known.words:.1f} (#{known.words_rank})")
    return ", ".join(said)


def _considered(node: Evidence, catalog: Catalog) -> Considered:
    return Considered(
        link(node.id, catalog), node.score, node.cosine, node.cosine_rank, node.words, node.words_rank, node.use
    )


def _cut(cut: Cut, catalog: Catalog) -> LeftOut:
    return LeftOut(link(cut.id, catalog), cut.score, shown_text(cut.reason))
