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
from callsheet.graphs.text.messages import counted
from callsheet.retrievers.evaluation.labelled_queries import LabelledQuery, Wanted
from callsheet.retrievers.index.node_texts import Progress
from callsheet.retrievers.retriever import AgentGraphRetriever
from callsheet.retrievers.selection.budget import SchemaTokens
from callsheet.retrievers.selection.result import Selection

Gold = Sequence[Collection[str]]
"""The relevant items of a query: for each item, the set of alternatives of which any one suffices.

A ranked item is relevant if it is an alternative of an item that no earlier one satisfies. Metrics ignore repeated ids.
They raise a ``SettingsError`` if there is no item, if an item has no alternative, or if k is below 1.
"""


def recall(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """Returns the share of elements that the first k items satisfy: ``R@k = |satisfied by the first k| / |gold|``.

    Source: Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, section 8.3, at a cut-off.
    """
    gains, total = _gains(ranked, gold, k)
    return sum(gains) / total


def average_precision(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """Returns ``AP@k = 1 / min(|gold|, k) * sum over i <= k of P@i * rel(i)``; its mean over queries is mAP@k.

    P@i is the share of relevant items in the first i, rel(i) is 1 where item i is relevant, else 0.

    Source: Manning, Raghavan and Schütze, section 8.4. The divisor min(|gold|, k) instead of |gold|
    lets a perfect ranking score 1 at every k; trec_eval's ``map_cut`` divides by |gold|.
    """
    gains, total = _gains(ranked, gold, k)
    precisions = 0.0
    relevant = 0
    for place, gain in enumerate(gains, 1):
        if gain:
            relevant += 1
            precisions += relevant / place
    return precisions / min(total, k)


def ndcg(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """Returns ``nDCG@k = sum over i <= k of rel(i) / log2(i + 1)``, divided by the same sum for a perfect ranking.

    The gains are binary; a perfect ranking has relevant items in its first min(|gold|, k) places.

    Source: Järvelin and Kekäläinen, *Cumulated Gain-Based Evaluation of IR Techniques* (TOIS 2002), with the
    discount log2(i + 1) of trec_eval's ``ndcg_cut``.
    """
    gains, total = _gains(ranked, gold, k)
    dcg = sum(1 / log2(place + 1) for place, gain in enumerate(gains, 1) if gain)
    return dcg / sum(1 / log2(place + 1) for place in range(1, min(total, k) + 1))


def complete(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """Returns ``COMP@k``: 1.0 if the first k items satisfy every element, otherwise 0.0.

    A request that needs three tools cannot be served by two, which recall does not show.

    Source: Qu et al., *Towards Completeness-Oriented Tool Retrieval for Large Language Models* (CIKM 2024),
    under the name COMP@K.
    """
    gains, total = _gains(ranked, gold, k)
    return float(sum(gains) == total)


def _gains(ranked: Sequence[str], gold: Gold, k: int) -> tuple[list[int], int]:
    """Returns how many elements each of the first k items is the first to satisfy, and the number of elements."""
    if k < 1:
        raise SettingsError(f"k must be at least 1, not {k}")
    for element in gold:
        if isinstance(element, str) or not element:
            raise SettingsError(f"an element of gold must be a set of one or more ids, not {element!r}")
    every = set(map(frozenset, gold))
    if not every:
        raise SettingsError("gold is empty: there is nothing to measure")
    remaining = every
    gains = []
    for item in islice(dict.fromkeys(ranked), k):
        unsatisfied = {element for element in remaining if item not in element}
        gains.append(len(remaining) - len(unsatisfied))
        remaining = unsatisfied
    return gains, len(every)


def round_numbers(value: Any) -> Any:
    """Returns a report with all numbers rounded to four decimal places."""
    match value:
        case float():
            return round(value, 4)
        case dict():
            return {key: round_numbers(item) for key, item in value.items()}
        case list() | tuple():
            return [round_numbers(item) for item in value]
        case _:
            return value


_MOST_CONFUSED = 20
_RESAMPLES = 1000
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
    """An irrelevant tool that ranks above a relevant one, and how often."""

    wanted: str
    instead: str
    count: int


@dataclass(frozen=True, slots=True)
class Lacking:
    """A relevant item that is missing from a selection, with its alternatives and the reason.

    ``rank`` is the rank of its best alternative by score among the nodes of this kind, from 1; None if the trace has
    none of them.
    """

    ids: tuple[str, ...]
    kind: Kind
    rank: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Missed:
    """A query whose selection lacks a relevant item.

    ``got`` lists what was selected, best first: tools if tools are labelled, otherwise agents, otherwise skills.
    """

    id: str
    query: str
    lacking: tuple[Lacking, ...]
    got: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenCost:
    """Approximate tokens of the schemas of a selection (mean) and of all tools, and the ratio of the two."""

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
        budget: The maximum numbers of agents and tools of a selection; None: no maximum.
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
    budget: Mapping[str, int | None]
    seconds: float
    seconds_per_query: float

    def metric(self, name: str) -> float:
        """Returns the value of a metric: ``recall@5`` or ``agent.recall@5``, ``tool.map@10``, ``complete@10`` ...

        Raises:
            SettingsError: It was not measured; the message lists the metrics that were.
        """
        levels = {"agent.": self.agent, "tool.": self.tool, "skill.": self.skill, "": {**self.agent, **self.complete}}
        values = {f"{level}{key}": value for level, of in levels.items() for key, value in of.items()}
        if name not in values:
            raise SettingsError(f"{name} was not measured on these queries: there are {', '.join(values)}")
        return values[name]

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values, for ``callsheet eval --json``; ``misses`` is the number of missed queries."""
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

    Example::

        queries = read_queries("queries.jsonl", retriever.catalog)
        evaluation = evaluate(retriever, queries)
        print(evaluation.metric("recall@5"))

    Raises:
        SettingsError: There is no query, or ``agents`` or ``tools`` is invalid.
    """
    if not queries:
        raise SettingsError("there is no labelled query to measure with: give at least one")
    agents = retriever.k if agents is None else agents
    tools = retriever.selector.settings.tools if tools is None else tools
    runs, seconds = _select_all(retriever, queries, agents=agents, tools=tools, progress=progress)
    values = {level: _values(runs, level, cuts) for level, cuts in _cuts(agents, tools).items()}
    misses = [missed_items(query, selection, retriever.catalog) for query, selection in runs]
    return Evaluation(
        n=len(queries),
        n_agent=sum(bool(query.agents) for query in queries),
        n_tool=sum(bool(query.tools) for query in queries),
        n_skill=sum(bool(query.skills) for query in queries),
        agents_from_tools=sum(query.agents_from_tools for query in queries),
        agent=_means(values["agent"]),
        tool=_means(values["tool"]),
        skill=_means(values["skill"]),
        complete=_means(values[""]),
        intervals=_intervals(values, seed),
        confused=_confused(runs),
        missed=tuple(miss for miss in misses if miss is not None),
        nothing_fits=sum(selection.verdict == "nothing_fits" for _, selection in runs),
        tokens=_token_cost(runs, retriever.catalog),
        budget={"agents": agents, "tools": tools},
        seconds=sum(seconds),
        seconds_per_query=median(seconds),
    )


def _select_all(
    retriever: AgentGraphRetriever,
    queries: Sequence[LabelledQuery],
    *,
    agents: int | None,
    tools: int,
    progress: Progress | None,
) -> tuple[list[Run], list[float]]:
    """Selects for each query; returns the selections, and how many seconds each took."""
    runs: list[Run] = []
    seconds: list[float] = []
    for done, query in enumerate(queries, 1):
        began = perf_counter()
        selection = retriever.select(query.query, agents=agents, tools=tools)
        seconds.append(perf_counter() - began)
        runs.append((query, selection))
        if progress is not None:
            progress(done, len(queries))
    return runs, seconds


def _token_cost(runs: Sequence[Run], catalog: Catalog) -> TokenCost:
    cost = SchemaTokens(catalog)
    of_all = cost.count(catalog.tools)
    of_selections = [cost.count(tool.id for tool in selection.tools) for _, selection in runs]
    mean = float(np.mean(of_selections))
    return TokenCost(mean, of_all, mean / of_all if of_all else 0.0)


def _means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: float(np.mean(column)) for name, column in values.items()}


def metric_names(agents: int | None, tools: int) -> tuple[str, ...]:
    """Returns the names of all metrics that ``evaluate`` computes for these numbers of agents and tools.

    Those of agents come first without their level, which may be left out, and again with it.
    """
    short: list[str] = []
    full: list[str] = []
    for level, cuts in _cuts(agents, tools).items():
        names = [f"{metric}@{k}" for metric in _LEVELS[level][1] for k in cuts]
        if level == "agent":
            short = names
        full += [_full_name(level, name) for name in names]
    return (*short, *full)


def _full_name(level: str, name: str) -> str:
    return f"{level}.{name}" if level else name


def _cuts(agents: int | None, tools: int) -> Mapping[str, Sequence[int]]:
    """Returns the cut-offs of each level: the usual ones up to the size of the selection, and this size.

    Without a maximum of agents, these have the usual cut-offs.
    """
    usual = {
        "agent": ((1, 3, 5), agents or 5),
        "tool": ((1, 3, 5, 10), tools),
        "skill": ((1, 2), 2),
        "": ((10,), tools),
    }
    cuts = {}
    for level, (ks, size) in usual.items():
        cuts[level] = sorted({*(k for k in ks if k <= size), size})
    return cuts


def _values(runs: Sequence[Run], level: str, cuts: Sequence[int]) -> dict[str, list[float]]:
    """Returns the values of each metric of one level, one per query that has labels at this level."""
    nodes, metrics = _LEVELS[level]
    pairs: list[tuple[list[str], Gold]] = []
    for query, selection in runs:
        gold: Gold = getattr(query, nodes)
        if gold:
            pairs.append((_ids(selection, nodes), gold))
    values: dict[str, list[float]] = {}
    if pairs:
        for name, metric in metrics.items():
            for k in cuts:
                values[f"{name}@{k}"] = [metric(ranked, gold, k) for ranked, gold in pairs]
    return values


def _ids(selection: Selection, nodes: str) -> list[str]:
    return [node.id for node in getattr(selection, nodes)]


def bootstrap_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """Returns the 95 % percentile bootstrap interval of the mean of at least one value.

    Source: Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 13.
    """
    return _intervals({"": {"mean": values}}, seed)["mean"]


def _intervals(levels: Mapping[str, Mapping[str, Sequence[float]]], seed: int) -> dict[str, tuple[float, float]]:
    """Returns 95 % bootstrap intervals of the means over queries, by level and metric.

    The metrics of one level have the same resamples, so that they can be compared.
    """
    intervals: dict[str, tuple[float, float]] = {}
    for level, columns in levels.items():
        if not columns:
            continue
        draw = np.random.default_rng(seed)
        values = np.array(list(columns.values()))
        n = values.shape[1]
        means = np.array([values[:, draw.integers(0, n, n)].mean(axis=1) for _ in range(_RESAMPLES)])
        bounds = np.percentile(means, (2.5, 97.5), axis=0).T.tolist()
        for name, (low, high) in zip(columns, bounds, strict=True):
            intervals[_full_name(level, name)] = (low, high)
    return intervals


def missed_items(labelled: LabelledQuery, selection: Selection, catalog: Catalog) -> Missed | None:
    """Returns the items that a selection lacks, with reasons from the trace; None if it is complete.

    If the agents are derived from the tools, only the tools count.
    """
    wanted: dict[Kind, Wanted] = {
        "agent": () if labelled.agents_from_tools else labelled.agents,
        "tool": labelled.tools,
        "skill": labelled.skills,
    }
    lacking = []
    for kind, groups in wanted.items():
        selected = set(_ids(selection, f"{kind}s"))
        for group in dict.fromkeys(groups):
            if selected.isdisjoint(group):
                rank = _nearest(group, kind, selection)[1]
                lacking.append(Lacking(group, kind, rank, _why(group, kind, selection, catalog)))
    if not lacking:
        return None
    if labelled.tools:
        shown = "tools"
    elif labelled.agents:
        shown = "agents"
    else:
        shown = "skills"
    return Missed(labelled.id, labelled.query, tuple(lacking), tuple(_ids(selection, shown)))


def _confused(runs: Sequence[Run]) -> tuple[Confused, ...]:
    """Returns the most frequent pairs of a relevant tool and an irrelevant one that ranks above it."""
    counts: Counter[tuple[str, str]] = Counter()
    for labelled, selection in runs:
        ranked = _ids(selection, "tools")
        relevant = {tool for group in labelled.tools for tool in group}
        for group in dict.fromkeys(labelled.tools):
            wanted, above = _first_of(group, ranked)
            if wanted is None:
                wanted = _nearest(group, "tool", selection)[0]
            counts.update((wanted, instead) for instead in above if instead not in relevant)
    return tuple(Confused(*pair, count) for pair, count in counts.most_common(_MOST_CONFUSED))


def _first_of(group: Sequence[str], ranked: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Returns the first of the alternatives in a ranking, and what is above it; None and all if there is none."""
    for place, tool in enumerate(ranked):
        if tool in group:
            return tool, ranked[:place]
    return None, ranked


def _nearest(group: Sequence[str], kind: Kind, selection: Selection) -> tuple[str, int | None]:
    """Returns the alternative with the best rank by score among the traced nodes of its kind, and this rank, from 1."""
    nodes = [node.id for node in selection.trace.nodes if node.kind == kind]
    ranks = {node: rank for rank, node in enumerate(nodes, 1)}
    nearest = min(group, key=lambda node: ranks.get(node, len(nodes) + 1))
    return nearest, ranks.get(nearest)


def _why(group: Sequence[str], kind: Kind, selection: Selection, catalog: Catalog) -> str:
    """Returns why a selection has none of these alternatives; the reason is that of the one that came closest."""
    for cut in selection.trace.cut:
        if cut.id in group:
            return f"cut: {cut.reason}"
    if kind == "tool":
        picked = _ids(selection, "agents")
        owners = {tool: catalog.tool(tool).agent for tool in group}
        within = [tool for tool in group if owners[tool] in picked]
        if not within and selection.trace.settings.get("agents") is not None:
            return f"no agent with it ({', '.join(dict.fromkeys(owners.values()))}) is among the {len(picked)} picked"
        group = within or group
    if _nearest(group, kind, selection)[1] is None:
        return f"not among the {counted(len(selection.trace.nodes), 'best node')}"
    return "ranked too low to be picked"
