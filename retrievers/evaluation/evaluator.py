"""Evaluates a retriever on labelled queries: metrics with intervals, errors with reasons, and costs in tokens."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any, Literal

import numpy as np

from callsheet.graphs import Catalog, SettingsError
from callsheet.graphs.text.sanitizing import counted
from callsheet.retrievers.evaluation.labelled_queries import LabelledQuery, Wanted
from callsheet.retrievers.evaluation.ranking_metrics import Gold, average_precision, complete, ndcg, recall
from callsheet.retrievers.index.node_texts import Progress
from callsheet.retrievers.retriever import AgentGraphRetriever
from callsheet.retrievers.selection.result import Evidence, Selection
from callsheet.retrievers.selection.selector import SchemaTokens

AGENTS, TOOLS, MOST_CONFUSED = 5, 10, 20
_AGENT_CUTS, _TOOL_CUTS, _SKILL_CUTS, _COMPLETE_CUT = (1, 3, 5), (1, 3, 5, 10), (1, 2), 10
_RESAMPLES = 1000
_COUNTS_AND_METRICS = ("n", "n_agent", "n_tool", "n_skill", "agents_from_tools", "agent", "tool", "skill")

Kind = Literal["agent", "tool", "skill"]
Metric = Callable[[Sequence[str], Gold, int], float]
_METRICS: Mapping[str, Metric] = {"recall": recall, "map": average_precision, "ndcg": ndcg}


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


@dataclass(frozen=True, slots=True)
class TokenCost:
    """Tokens of the tools' schemas, approximated by ``SchemaTokens``.

    Attributes:
        selected: Mean over the queries of the tokens of the selected tools.
        all: Tokens of all tools of the catalog.
    """

    selected: float
    all: int

    @property
    def share(self) -> float:
        """The share of a selection in all tokens, 0 to 1."""
        return self.selected / self.all if self.all else 0.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of an evaluation.

    Attributes:
        n: Number of queries.
        n_agent: Number of queries with labelled agents, or owners of labelled tools; the metrics of agents are means
            over these.
        n_tool: Number of queries with labelled tools; the metrics of tools are means over these.
        n_skill: Number of queries with labelled skills; the metrics of skills are means over these.
        agents_from_tools: Number of queries whose labelled agents are the owners of the labelled tools.
        agent: ``recall@1``, ``map@1``, ``ndcg@1``, ... of the ranking of agents; empty if ``n_agent`` is 0.
        tool: The same for the ranking of tools; empty if no query has labelled tools.
        skill: ``recall@1`` and ``recall@2`` of the skills; empty if no query has labelled skills.
        complete: ``complete@10``: the share of queries whose first ten tools include everything that is relevant.
        intervals: 95 % bootstrap confidence intervals over the queries, by ``agent.recall@5``, ``complete@10`` ...
        confused: The most frequent pairs of confused tools.
        missed: The queries with incomplete selections, with reasons.
        nothing_fits: Number of queries with the verdict ``nothing_fits``.
        tokens: Tokens of the selections.
        seconds: Time of all selections.
        seconds_per_query: Median time of a selection.
    """

    n: int
    n_agent: int
    n_tool: int
    n_skill: int
    agents_from_tools: int
    agent: Mapping[str, float]
    tool: Mapping[str, float]
    skill: Mapping[str, float]
    complete: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    confused: tuple[Confused, ...]
    missed: tuple[Missed, ...]
    nothing_fits: int
    tokens: TokenCost
    seconds: float
    seconds_per_query: float

    def metric(self, name: str) -> float:
        """The value of ``recall@5`` or ``agent.recall@5``, ``tool.recall@10``, ``skill.recall@1``, ``complete@10``.

        Raises:
            SettingsError: The metric is unknown or was not measured; the message names those that were.
        """
        levels = {"agent.": self.agent, "tool.": self.tool, "skill.": self.skill, "": {**self.agent, **self.complete}}
        values = {f"{level}{key}": value for level, of in levels.items() for key, value in of.items()}
        if name not in values:
            raise SettingsError(f"{name} was not measured on these queries: there are {', '.join(values)}")
        return values[name]

    def to_dict(self) -> dict[str, Any]:
        """JSON values, for ``callsheet eval --json``."""
        plain = asdict(self)
        return {
            **{key: plain[key] for key in _COUNTS_AND_METRICS},
            **(plain["complete"] or {f"complete@{_COMPLETE_CUT}": None}),
            "intervals": {name: list(bounds) for name, bounds in self.intervals.items()},
            "confused": plain["confused"],
            "misses": len(self.missed),
            "missed": plain["missed"],
            "nothing_fits": self.nothing_fits,
            "tokens": {**plain["tokens"], "share": self.tokens.share},
            "seconds": self.seconds,
            "seconds_per_query": self.seconds_per_query,
        }


def evaluate(
    retriever: AgentGraphRetriever,
    queries: Sequence[LabelledQuery],
    *,
    agents: int = AGENTS,
    tools: int = TOOLS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Runs a retriever on labelled queries and measures its selections.

    The metrics are computed at 1, 3 and 5 agents and at 1, 3, 5 and 10 tools, up to the size of the selection, and at
    this size. Of skills, only recall is computed, at 1 and 2.

    Args:
        retriever: The retriever.
        queries: The labelled queries; see ``read_queries``.
        agents: Number of agents per selection.
        tools: Number of tools per selection.
        seed: Seed of the bootstrap.
        progress: Called after each query with the number of finished queries and the number of all queries.

    Raises:
        SettingsError: There is no query, or ``agents`` or ``tools`` is invalid.
    """
    if not queries:
        raise SettingsError("there is no labelled query to measure with: give at least one")
    selections, seconds = _run(retriever, queries, agents, tools, progress)
    runs = list(zip(queries, selections, strict=True))
    rankings = [(query, _rankings(selection)) for query, selection in runs]
    by_agent = [(query.agents, ranked["agent"]) for query, ranked in rankings]
    by_tool = [(query.tools, ranked["tool"]) for query, ranked in rankings]
    by_skill = [(query.skills, ranked["skill"]) for query, ranked in rankings]
    levels = {
        "agent": _level(by_agent, _METRICS, _cuts(_AGENT_CUTS, agents)),
        "tool": _level(by_tool, _METRICS, _cuts(_TOOL_CUTS, tools)),
        "skill": _level(by_skill, {"recall": recall}, _SKILL_CUTS),
        "": _level(by_tool, {"complete": complete}, _complete_cuts(tools)),
    }
    catalog, cost = retriever.catalog, SchemaTokens(retriever.catalog)
    selected = [cost.count(tool.id for tool in selection.tools) for selection in selections]
    means = {level: {name: float(np.mean(column)) for name, column in of.items()} for level, of in levels.items()}
    return Evaluation(
        n=len(queries),
        n_agent=sum(bool(query.agents) for query in queries),
        n_tool=sum(bool(query.tools) for query in queries),
        n_skill=sum(bool(query.skills) for query in queries),
        agents_from_tools=sum(query.agents_from_tools for query in queries),
        agent=means["agent"],
        tool=means["tool"],
        skill=means["skill"],
        complete=means[""],
        intervals=_intervals(levels, seed),
        confused=confused(runs),
        missed=tuple(miss for query, selection in runs if (miss := missed(query, selection, catalog))),
        nothing_fits=sum(selection.verdict == "nothing_fits" for selection in selections),
        tokens=TokenCost(float(np.mean(selected)), cost.count(catalog.tools)),
        seconds=sum(seconds),
        seconds_per_query=median(seconds),
    )


def metric_names(agents: int = AGENTS, tools: int = TOOLS) -> tuple[str, ...]:
    """The names of all metrics that ``evaluate`` computes for these numbers of agents and tools."""
    of_agents = [f"{metric}@{k}" for metric in _METRICS for k in _cuts(_AGENT_CUTS, agents)]
    of_tools = [f"tool.{metric}@{k}" for metric in _METRICS for k in _cuts(_TOOL_CUTS, tools)]
    of_skills = [f"skill.recall@{k}" for k in _SKILL_CUTS]
    of_sets = [f"complete@{k}" for k in _complete_cuts(tools)]
    return (*of_agents, *(f"agent.{name}" for name in of_agents), *of_tools, *of_skills, *of_sets)


def _cuts(usual: Sequence[int], most: int) -> tuple[int, ...]:
    """The usual cut-offs up to the size of the selection, and this size."""
    return tuple(sorted({k for k in usual if k <= most} | {most}))


def _complete_cuts(tools: int) -> tuple[int, ...]:
    return _cuts((_COMPLETE_CUT,), tools)


def _run(
    retriever: AgentGraphRetriever, queries: Sequence[LabelledQuery], agents: int, tools: int, progress: Progress | None
) -> tuple[list[Selection], list[float]]:
    """Selects for every query, with at least as many agents as tools, so that agents do not limit the tools."""
    selections, seconds = [], []
    for done, labelled in enumerate(queries, 1):
        began = perf_counter()
        selections.append(retriever.select(labelled.query, agents=max(agents, tools), tools=tools))
        seconds.append(perf_counter() - began)
        if progress is not None:
            progress(done, len(queries))
    return selections, seconds


def _level(
    rankings: Sequence[tuple[Wanted, list[str]]], metrics: Mapping[str, Metric], cuts: Sequence[int]
) -> dict[str, list[float]]:
    """The values of each metric of one level, one per query; queries without labels at this level are left out."""
    labelled = [(gold, ranked) for gold, ranked in rankings if gold]
    if not labelled:
        return {}
    return {
        f"{name}@{k}": [metric(ranked, gold, k) for gold, ranked in labelled]
        for name, metric in metrics.items()
        for k in cuts
    }


def bootstrap_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """95 % percentile bootstrap interval of a mean (Efron and Tibshirani 1993, chapter 13).

    Args:
        values: One value per query; at least one.
        seed: Seed of the resamples.
    """
    low, high = _bootstrap(np.array([values]), seed)
    return float(low[0]), float(high[0])


def _bootstrap(values: Any, seed: int) -> tuple[Any, Any]:
    """Intervals of the means of some rows, from the same resamples of the columns."""
    draw, n = np.random.default_rng(seed), values.shape[1]
    means = np.array([values[:, draw.integers(0, n, n)].mean(axis=1) for _ in range(_RESAMPLES)])
    low, high = np.percentile(means, (2.5, 97.5), axis=0)
    return low, high


def _intervals(levels: Mapping[str, Mapping[str, Sequence[float]]], seed: int) -> dict[str, tuple[float, float]]:
    """95 % bootstrap intervals of the means, over queries, by level and metric."""
    intervals: dict[str, tuple[float, float]] = {}
    for level, of in levels.items():
        if not of:
            continue
        low, high = _bootstrap(np.array(list(of.values())), seed)
        names = [f"{level}.{name}" if level else name for name in of]
        intervals |= {name: (float(a), float(b)) for name, a, b in zip(names, low, high, strict=True)}
    return intervals


def _rankings(selection: Selection) -> dict[Kind, list[str]]:
    """The ids of a selection, best first."""
    nodes: dict[Kind, Sequence[Any]] = {
        "agent": selection.agents, "tool": selection.tools, "skill": selection.skills
    }  # fmt: skip
    return {kind: [node.id for node in of] for kind, of in nodes.items()}


def missed(labelled: LabelledQuery, selection: Selection, catalog: Catalog) -> Missed | None:
    """The items that a selection lacks, with reasons from the trace; None if it is complete.

    If the agents are derived from the tools, only the tools count.
    """
    wanted: dict[Kind, Wanted] = {
        "agent": () if labelled.agents_from_tools else labelled.agents,
        "tool": labelled.tools,
        "skill": labelled.skills,
    }
    got = _rankings(selection)
    lacking = tuple(
        _lacking(group, kind, selection, catalog)
        for kind, groups in wanted.items()
        for group in dict.fromkeys(groups)
        if not set(group) & set(got[kind])
    )
    kind: Kind = "tool" if labelled.tools else "agent" if labelled.agents else "skill"
    return Missed(labelled.id, labelled.query, lacking, tuple(got[kind])) if lacking else None


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
