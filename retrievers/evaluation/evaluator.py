"""Evaluates a retriever on labelled queries: metrics with intervals, errors with reasons, and costs in tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from math import log2
from statistics import median
from time import perf_counter
from typing import Any, Literal

import numpy as np

from callsheet.graphs import Catalog, SettingsError
from callsheet.graphs.text.sanitizing import counted
from callsheet.retrievers.evaluation.labelled_queries import LabelledQuery, Wanted
from callsheet.retrievers.index.node_texts import Progress
from callsheet.retrievers.retriever import AgentGraphRetriever
from callsheet.retrievers.selection.budget import SchemaTokens
from callsheet.retrievers.selection.result import Selection

Gold = Sequence[Collection[str]]
"""One element per relevant item: the set of its alternatives, any one of which satisfies it; equal ones count once.

A ranked item is relevant if it satisfies an element that none before it satisfies. Metrics ignore ids that come again,
and raise a ``SettingsError`` if there is no element, or an empty one, or k is below 1.
"""


def recall(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """The share of elements that the first k items satisfy: ``R@k = |satisfied by the first k| / |gold|``.

    Source: Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, section 8.3, at a cut-off.
    """
    gains, total = _gains(ranked, gold, k)
    return sum(gains) / total


def average_precision(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """``AP@k = 1 / min(|gold|, k) * sum over i <= k of P@i * rel(i)``; its mean over queries is mAP@k.

    P@i is the share of relevant items in the first i, rel(i) is 1 where item i is relevant, else 0.

    Source: Manning, Raghavan and Schütze, section 8.4. The divisor min(|gold|, k) instead of |gold|
    lets a perfect ranking score 1 at every k; trec_eval's ``map_cut`` divides by |gold|.
    """
    gains, total = _gains(ranked, gold, k)
    precisions, relevant = 0.0, 0
    for place, gain in enumerate(gains, 1):
        if gain:
            relevant += 1
            precisions += relevant / place
    return precisions / min(total, k)


def ndcg(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """``nDCG@k = sum over i <= k of rel(i) / log2(i + 1)``, divided by the same sum for a perfect ranking.

    The gains are binary; a perfect ranking has relevant items in its first min(|gold|, k) places.

    Source: Järvelin and Kekäläinen, *Cumulated Gain-Based Evaluation of IR Techniques* (TOIS 2002), with the
    discount log2(i + 1) of trec_eval's ``ndcg_cut``.
    """
    gains, total = _gains(ranked, gold, k)
    dcg = sum(1 / log2(place + 1) for place, gain in enumerate(gains, 1) if gain)
    return dcg / sum(1 / log2(place + 1) for place in range(1, min(total, k) + 1))


def complete(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """``COMP@k``: 1.0 if the first k items satisfy every element, otherwise 0.0.

    A request that needs three tools cannot be served by two, which recall does not show.

    Source: Qu et al., *Towards Completeness-Oriented Tool Retrieval for Large Language Models* (CIKM 2024),
    under the name COMP@K.
    """
    gains, total = _gains(ranked, gold, k)
    return float(sum(gains) == total)


def _gains(ranked: Sequence[str], gold: Gold, k: int) -> tuple[list[int], int]:
    """The number of elements that each of the first k items is the first to satisfy, and the number of elements."""
    if k < 1:
        raise SettingsError(f"k must be at least 1, not {k}")
    for element in gold:
        if isinstance(element, str) or not element:
            raise SettingsError(f"an element of gold must be a set of one or more ids, not {element!r}")
    every = set(map(frozenset, gold))
    if not every:
        raise SettingsError("gold is empty: there is nothing to measure")
    remaining, gains = every, []
    for item in islice(dict.fromkeys(ranked), k):
        unsatisfied = {element for element in remaining if item not in element}
        gains.append(len(remaining) - len(unsatisfied))
        remaining = unsatisfied
    return gains, len(every)


def rounded(value: Any) -> Any:
    """A report with all numbers rounded to four decimal places."""
    match value:
        case float():
            return round(value, 4)
        case dict():
            return {key: rounded(item) for key, item in value.items()}
        case list() | tuple():
            return [rounded(item) for item in value]
        case _:
            return value


_MOST_CONFUSED, _RESAMPLES = 20, 1000
_COMPLETE = "complete@10"

Kind = Literal["agent", "tool", "skill"]
Run = tuple[LabelledQuery, Selection]
Metric = Callable[[Sequence[str], Gold, int], float]
_METRICS: Mapping[str, Metric] = {"recall": recall, "map": average_precision, "ndcg": ndcg}
_LEVELS: Mapping[str, tuple[str, Mapping[str, Metric]]] = {
    "agent": ("agents", _METRICS),
    "tool": ("tools", _METRICS),
    "skill": ("skills", {"recall": recall}),
    "": ("tools", {"complete": complete}),
}
"""What is ranked at each level, and its metrics; the last one is of whole sets of tools."""


@dataclass(frozen=True, slots=True)
class Confused:
    """An irrelevant tool that ranks above a relevant one."""

    wanted: str
    instead: str
    count: int


@dataclass(frozen=True, slots=True)
class Lacking:
    """A relevant item that a selection lacks, by its alternatives, with the reason in words.

    ``rank`` is the best of them by score among the nodes of this kind, from 1; None if none is in the trace.
    """

    ids: tuple[str, ...]
    kind: Kind
    rank: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Missed:
    """A query whose selection is incomplete.

    ``got`` are the selected tools, best first; if none are labelled, the agents; if only skills are, these.
    """

    id: str
    query: str
    lacking: tuple[Lacking, ...]
    got: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenCost:
    """Tokens of schemas, approximated by ``SchemaTokens``: of a selection (mean), of all tools, and the ratio."""

    selected: float
    all: int
    share: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of an evaluation.

    Attributes:
        n: Number of queries.
        n_agent, n_tool, n_skill: Number of queries with labelled agents, or owners of labelled tools; with labelled
            tools; with labelled skills. The metrics are means over these.
        agents_from_tools: Number of queries whose labelled agents are the owners of the labelled tools.
        agent, tool: ``recall@1``, ``map@1``, ``ndcg@1``, ... of the ranking; empty if nothing of this kind is labelled.
        skill: ``recall@1`` and ``recall@2`` of the skills.
        complete: ``complete@10``: the share of queries whose first ten tools include everything that is relevant.
        intervals: 95 % bootstrap confidence intervals over the queries, by ``agent.recall@5``, ``complete@10`` ...
        confused: The most frequent pairs of confused tools.
        missed: The queries with incomplete selections, with reasons.
        nothing_fits: Number of queries with the verdict ``nothing_fits``.
        seconds, seconds_per_query: Time of all selections, and the median of one.
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
        """The value of ``recall@5`` or ``agent.recall@5``, ``complete@10`` ...; a SettingsError if not measured."""
        levels = {"agent.": self.agent, "tool.": self.tool, "skill.": self.skill, "": {**self.agent, **self.complete}}
        values = {f"{level}{key}": value for level, of in levels.items() for key, value in of.items()}
        if name not in values:
            raise SettingsError(f"{name} was not measured on these queries: there are {', '.join(values)}")
        return values[name]

    def to_dict(self) -> dict[str, Any]:
        """JSON values, for ``callsheet eval --json``; ``misses`` is the number of missed queries."""
        plain = asdict(self)
        sets = plain.pop("complete") or {_COMPLETE: None}
        intervals = {name: list(bounds) for name, bounds in self.intervals.items()}
        return {**plain, **sets, "intervals": intervals, "misses": len(self.missed)}


def evaluate(
    retriever: AgentGraphRetriever,
    queries: Sequence[LabelledQuery],
    *,
    agents: int | None = None,
    tools: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Runs a retriever on labelled queries and measures its selections, as ``retriever.select`` returns them.

    The metrics are computed at 1, 3 and 5 agents and at 1, 3, 5 and 10 tools, up to the size of the selection, and at
    this size. Of skills, only recall is computed, at 1 and 2.

    ``agents`` and ``tools`` are the maximum numbers per selection, by default the retriever's; ``seed`` is that of the
    bootstrap; ``progress`` is called after each query with the numbers of finished and of all queries.

    Raises:
        SettingsError: There is no query, or ``agents`` or ``tools`` is invalid.
    """
    if not queries:
        raise SettingsError("there is no labelled query to measure with: give at least one")
    agents = retriever.k if agents is None else agents
    settings = retriever.selector.settings
    tools = settings.tools if tools is None else tools
    # Methods that rank tools alone do not cut their list to the tools of a few agents.
    most = max(agents, tools) if settings.in_order and settings.ranking == "scores" else agents
    runs, seconds = list[Run](), list[float]()
    for done, query in enumerate(queries, 1):
        began = perf_counter()
        runs.append((query, retriever.select(query.query, agents=most, tools=tools)))
        seconds.append(perf_counter() - began)
        if progress is not None:
            progress(done, len(queries))
    levels = {level: _level(runs, level, cuts) for level, cuts in _cuts(agents, tools).items()}
    means = {level: {name: float(np.mean(column)) for name, column in of.items()} for level, of in levels.items()}
    cost = SchemaTokens(retriever.catalog)
    every = cost.count(retriever.catalog.tools)
    selected = float(np.mean([cost.count(tool.id for tool in selection.tools) for _, selection in runs]))
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
        confused=_confused(runs),
        missed=tuple(miss for query, selection in runs if (miss := missed(query, selection, retriever.catalog))),
        nothing_fits=sum(selection.verdict == "nothing_fits" for _, selection in runs),
        tokens=TokenCost(selected, every, selected / every if every else 0.0),
        seconds=sum(seconds),
        seconds_per_query=median(seconds),
    )


def metric_names(agents: int, tools: int) -> tuple[str, ...]:
    """The names of all metrics that ``evaluate`` computes for these numbers of agents and tools."""
    cuts = _cuts(agents, tools)
    names = {level: [f"{metric}@{k}" for metric in _LEVELS[level][1] for k in cuts[level]] for level in cuts}
    return (*names["agent"], *(f"{level}.{name}".lstrip(".") for level, of in names.items() for name in of))


def _cuts(agents: int, tools: int) -> Mapping[str, Sequence[int]]:
    """The cut-offs of each level: the usual ones up to the size of the selection, and this size."""
    usual = {"agent": ((1, 3, 5), agents), "tool": ((1, 3, 5, 10), tools), "skill": ((1, 2), 2), "": ((10,), tools)}
    return {level: sorted({k for k in cuts if k <= most} | {most}) for level, (cuts, most) in usual.items()}


def _level(runs: Sequence[Run], level: str, cuts: Sequence[int]) -> dict[str, list[float]]:
    """The values of each metric of one level, one per query; queries without labels at this level are left out."""
    nodes, metrics = _LEVELS[level]
    pairs = [(_ids(selection, nodes), gold) for query, selection in runs if (gold := getattr(query, nodes))]
    return {
        f"{name}@{k}": [metric(ranked, gold, k) for ranked, gold in pairs]
        for name, metric in metrics.items()
        for k in cuts
        if pairs
    }


def _ids(selection: Selection, nodes: str) -> list[str]:
    return [node.id for node in getattr(selection, nodes)]


def bootstrap_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the mean of at least one value (Efron and Tibshirani 1993, chapter 13)."""
    return _intervals({"": {"mean": values}}, seed)["mean"]


def _intervals(levels: Mapping[str, Mapping[str, Sequence[float]]], seed: int) -> dict[str, tuple[float, float]]:
    """95 % bootstrap intervals of the means, over queries, by level and metric; one level has the same resamples."""
    intervals: dict[str, tuple[float, float]] = {}
    for level, of in levels.items():
        if of:
            draw, values = np.random.default_rng(seed), np.array(list(of.values()))
            n = values.shape[1]
            means = np.array([values[:, draw.integers(0, n, n)].mean(axis=1) for _ in range(_RESAMPLES)])
            bounds = np.percentile(means, (2.5, 97.5), axis=0).T.tolist()
            names = [f"{level}.{name}".lstrip(".") for name in of]
            intervals |= {name: (low, high) for name, (low, high) in zip(names, bounds, strict=True)}
    return intervals


def missed(labelled: LabelledQuery, selection: Selection, catalog: Catalog) -> Missed | None:
    """The items that a selection lacks, with reasons from the trace; None if it is complete.

    If the agents are derived from the tools, only the tools count.
    """
    wanted: dict[Kind, Wanted] = {
        "agent": () if labelled.agents_from_tools else labelled.agents,
        "tool": labelled.tools,
        "skill": labelled.skills,
    }
    lacking = tuple(
        Lacking(group, kind, _nearest(group, kind, selection)[1], _why(group, kind, selection, catalog))
        for kind, groups in wanted.items()
        for group in dict.fromkeys(groups)
        if not set(group) & set(_ids(selection, f"{kind}s"))
    )
    nodes = "tools" if labelled.tools else "agents" if labelled.agents else "skills"
    return Missed(labelled.id, labelled.query, lacking, tuple(_ids(selection, nodes))) if lacking else None


def _confused(runs: Sequence[Run]) -> tuple[Confused, ...]:
    """The most frequent pairs of a relevant tool (the nearest of its alternatives) and an irrelevant one above it."""
    counts: Counter[tuple[str, str]] = Counter()
    for labelled, selection in runs:
        ranked, useful = _ids(selection, "tools"), {tool for group in labelled.tools for tool in group}
        for group in dict.fromkeys(labelled.tools):
            wanted = next((tool for tool in ranked if tool in group), None) or _nearest(group, "tool", selection)[0]
            above = ranked[: ranked.index(wanted)] if wanted in ranked else ranked
            counts.update((wanted, instead) for instead in above if instead not in useful)
    return tuple(Confused(*pair, count) for pair, count in counts.most_common(_MOST_CONFUSED))


def _nearest(group: Sequence[str], kind: Kind, selection: Selection) -> tuple[str, int | None]:
    """The alternative with the best rank by score among the traced nodes of its kind, and this rank, from 1."""
    nodes = [node.id for node in selection.trace.nodes if node.kind == kind]
    ranks = {node: rank for rank, node in enumerate(nodes, 1)}
    nearest = min(group, key=lambda node: ranks.get(node, len(nodes) + 1))
    return nearest, ranks.get(nearest)


def _why(group: Sequence[str], kind: Kind, selection: Selection, catalog: Catalog) -> str:
    """The reason of the alternative that came closest: cut by the budget, of a picked agent, or of another."""
    if cut := next((cut for cut in selection.trace.cut if cut.id in group), None):
        return f"cut: {cut.reason}"
    if kind == "tool":
        picked = _ids(selection, "agents")
        owners = {tool: catalog.tool(tool).agent for tool in group}
        group = [tool for tool in group if owners[tool] in picked]
        if not group:
            return f"no agent with it ({', '.join(dict.fromkeys(owners.values()))}) is among the {len(picked)} picked"
    if _nearest(group, kind, selection)[1] is None:
        return f"not among the {counted(len(selection.trace.nodes), 'best node')}"
    return "ranked too low to be picked"
