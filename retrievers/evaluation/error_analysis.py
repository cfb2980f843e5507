"""Error analysis on labelled queries: missing items with reasons, and confused tools."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from callsheet.graphs import Catalog
from callsheet.graphs.text.sanitizing import counted
from callsheet.retrievers.evaluation.labelled_queries import LabelledQuery, Wanted
from callsheet.retrievers.selection.result import Evidence, Selection

MOST_CONFUSED = 20
Kind = Literal["agent", "tool", "skill"]


@dataclass(frozen=True, slots=True)
class Confused:
    """An irrelevant tool that ranks above a relevant one."""

    wanted: str
    instead: str
    count: int


@dataclass(frozen=True, slots=True)
class Lacking:
    """A relevant item that a selection lacks.

    Attributes:
        kind: ``agent``, ``tool`` or ``skill``.
        nearest: The alternative with the best rank.
        rank: Its rank by score among the nodes of this kind in the trace, from 1; None if it is not in the trace.
        evidence: Its scores; None if it is not in the trace.
        why: The reason, in words.
    """

    ids: tuple[str, ...]
    kind: Kind
    nearest: str
    rank: int | None
    evidence: Evidence | None
    why: str


@dataclass(frozen=True, slots=True)
class Missed:
    """A query whose selection is incomplete.

    Attributes:
        got: The selected tools, best first; if none are labelled, the agents; if only skills are labelled, these.
    """

    id: str
    query: str
    lacking: tuple[Lacking, ...]
    got: tuple[str, ...]


def missed(labelled: LabelledQuery, selection: Selection, catalog: Catalog) -> Missed | None:
    """The items that a selection lacks, with reasons from the trace; None if it is complete.

    If the agents are derived from the tools, only the tools count.
    """
    agents = tuple(agent.id for agent in selection.agents)
    tools = tuple(tool.id for tool in selection.tools)
    skills = tuple(skill.id for skill in selection.skills)
    own = () if labelled.agents_from_tools else labelled.agents
    lacking = (
        *(_lacking(group, "agent", selection, catalog) for group in _open(own, agents)),
        *(_lacking(group, "tool", selection, catalog) for group in _open(labelled.tools, tools)),
        *(_lacking(group, "skill", selection, catalog) for group in _open(labelled.skills, skills)),
    )
    got = tools if labelled.tools else agents if labelled.agents else skills
    return Missed(labelled.id, labelled.query, lacking, got) if lacking else None


def confused(pairs: Iterable[tuple[LabelledQuery, Selection]], most: int = MOST_CONFUSED) -> tuple[Confused, ...]:
    """The pairs of a relevant tool and an irrelevant one above it, most frequent first.

    Args:
        pairs: Queries with their selections.
        most: Maximum number of pairs; of equally frequent pairs, those with a higher irrelevant tool come first.
    """
    counts: Counter[tuple[str, str]] = Counter()
    height: defaultdict[tuple[str, str], float] = defaultdict(float)
    for labelled, selection in pairs:
        for wanted, instead, rank in _above(labelled.tools, [tool.id for tool in selection.tools]):
            counts[wanted, instead] += 1
            height[wanted, instead] += 1 / rank
    order = sorted(counts, key=lambda pair: (-counts[pair], -height[pair], pair))
    return tuple(Confused(*pair, counts[pair]) for pair in order[:most])


def _above(wanted: Wanted, ranked: list[str]) -> Iterator[tuple[str, str, int]]:
    """Each relevant tool (the best of its alternatives) with each irrelevant tool above it, and its rank."""
    place = {tool: rank for rank, tool in enumerate(ranked, 1)}
    useful = {tool for group in wanted for tool in group}
    for group in dict.fromkeys(wanted):
        best = min(group, key=lambda tool: place.get(tool, len(ranked) + 1))
        for tool in ranked[: place.get(best, len(ranked) + 1) - 1]:
            if tool not in useful:
                yield best, tool, place[tool]


def _open(wanted: Wanted, got: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [group for group in dict.fromkeys(wanted) if not set(group) & set(got)]


def _lacking(group: tuple[str, ...], kind: Kind, selection: Selection, catalog: Catalog) -> Lacking:
    ranks: dict[str, tuple[int, Evidence]] = {}
    for node in selection.trace.nodes:
        if node.kind == kind:
            ranks[node.id] = len(ranks) + 1, node
    nearest = min(group, key=lambda node: ranks[node][0] if node in ranks else len(ranks) + 1)
    rank, evidence = ranks.get(nearest, (None, None))
    return Lacking(group, kind, nearest, rank, evidence, _why(nearest, kind, rank, selection, catalog))


def _why(node: str, kind: Kind, rank: int | None, selection: Selection, catalog: Catalog) -> str:
    picked = {agent.id for agent in selection.agents}
    cut = next((cut.reason for cut in selection.trace.cut if cut.id == node), None)
    if cut is not None:
        return f"cut: {cut}"
    if kind == "tool" and (owner := catalog.tool(node).agent) not in picked:
        return f"its agent {owner} is not among the {len(picked)} picked"
    if rank is None:
        return f"not among the {counted(len(selection.trace.nodes), 'best node')}"
    if kind == "agent":
        return f"picked were {counted(len(picked), 'agent')} with better tools"
    return "the best tool or another skill fits better" if kind == "skill" else "ranked too low to be picked"
