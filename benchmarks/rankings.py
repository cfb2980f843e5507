"""One benchmark, all methods in one run with one embedder: ours, the baselines, and an oracle as a reranker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document

from benchmarks.baselines import (
    AGENT_BASELINES,
    DEPENDENCY_BASELINES,
    FIRST_TOOLS,
    TOOL_BASELINES,
    WEIGHT_GRID,
    agent_as_a_graph_at,
    graph_rag_at,
)
from benchmarks.bootstrap import Bootstrap, cross_validated
from benchmarks.search import Rank, World
from benchmarks.sets.cases import Benchmark, Case, Level
from callsheet.graphs.text.sanitizing import clean
from callsheet.retrievers import AgentGraphRetriever, Reranker
from callsheet.retrievers.evaluation.evaluator import TOOLS
from callsheet.retrievers.evaluation.ranking_metrics import average_precision, complete, ndcg, recall

METRICS = {"recall": recall, "map": average_precision, "ndcg": ndcg, "complete": complete}
OURS = "Callsheet, default"
OURS_FOLDED = "Callsheet, settings"
OURS_PUBLISHED = "Callsheet, published embedder"
ORACLE = "Callsheet, reranked by an oracle"
NOTHING, FOLDED, IN_SAMPLE, HEADROOM = "nothing tuned", "cross-validated", "in sample", "headroom: it knows the answers"
RERANKED = ("livemcpbench-steps", "toollinkos-published", "toollinkos-shuffled", "toolsandbox")
DEFAULT = "default"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    DEFAULT: {},
    "lexical_weight=.2": {"lexical_weight": 0.2},
    "lexical_weight=.4": {"lexical_weight": 0.4},
    "listing=.85": {"listing": 0.85},
}
"""The few settings that a user might choose for a catalog."""
_PEAKS = (10, 20, 50, 100)

Values = Mapping[str, Sequence[float]]
"""Metric at a cut-off, as ``recall@5`` -> one value a query."""


def ours_at(
    world: World,
    level: Level,
    depth: int,
    *,
    reranker: Reranker | None = None,
    settings: Mapping[str, Mapping[str, Any]] = SETTINGS,
) -> Mapping[str, Rank]:
    """``AgentGraphRetriever`` as it comes, and under each of the settings: the agents, or the tools, of a selection.

    A list of tools that is longer than a selection by default (``depth``) has behind that selection what one with a
    larger budget holds beside it.
    """
    retriever = AgentGraphRetriever.from_catalog(
        world.catalog, index=":memory:", embeddings=world.vectors, reranker=reranker
    )

    def ranked(changes: Mapping[str, Any]) -> Rank:
        def rank(query: str) -> list[str]:
            chosen = retriever.select(query, **changes)
            if level == "agent":
                return [agent.id for agent in chosen.agents]
            longer = retriever.select(query, tools=depth, **changes).tools if depth > TOOLS else ()
            return list(dict.fromkeys(tool.id for tool in (*chosen.tools, *longer)))

        return rank

    return {name: ranked(changes) for name, changes in settings.items()}


class Oracle:
    """A reranker that puts what is wanted (query -> alternatives for each item) first, as far as it is shown it."""

    def __init__(self, wanted: Mapping[str, Sequence[frozenset[str]]], level: Level) -> None:
        self._wanted = wanted
        self._key = "agent" if level == "agent" else "id"

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Of each set of alternatives the one that stands highest, in their old order; then the others."""
        ids = [document.metadata[self._key] for document in documents]
        places = ([i for i, one in enumerate(ids) if one in wanted][:1] for wanted in self._wanted.get(query, ()))
        first = {place for found in places for place in found}
        return [documents[i] for i in sorted(range(len(ids)), key=lambda i: (i not in first, i))]


def oracle(world: World, level: Level, depth: int, cases: Iterable[Case]) -> Rank:
    """Ours with its first 20 tools reordered by one who knows the answers: what is to be won there."""
    wanted: dict[str, list[frozenset[str]]] = {}
    for case in cases:  # by the query as a selector hands it on; where two are worded alike, all that both want
        wanted.setdefault(clean(case.query), []).extend(frozenset(element) for element in case.gold(level))
    return ours_at(world, level, depth, reranker=Oracle(wanted, level))[DEFAULT]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did on all queries, where it is from, what was tuned, and seconds without shared embedding."""

    values: Values
    tuning: str = NOTHING
    source: str = ""
    note: str = ""
    seconds: float = 0.0


def evaluate(rankings: Sequence[Sequence[str]], cases: Sequence[Case], level: Level, cutoffs: Sequence[int]) -> Values:
    """Every metric at every cut-off, query by query."""
    return {
        f"{name}@{k}": [metric(list(ranked), case.gold(level), k) for ranked, case in zip(rankings, cases, strict=True)]
        for name, metric in METRICS.items()
        for k in cutoffs
    }


def outcomes(bench: Benchmark, level: Level, world: World) -> Iterator[tuple[str, Outcome]]:
    """Ours first, then every baseline of this level, then those with something to choose, cross-validated."""
    cases, cutoffs = bench.cases(level), bench.cutoffs_of(level)
    world.published.encode([case.query for case in cases])

    def outcome(make: Callable[[], Rank], source: str = "", tuning: str = NOTHING) -> Outcome:
        rank = make()
        rank(cases[0].query)
        start = time.perf_counter()
        rankings = [rank(case.query) for case in cases]
        spent = time.perf_counter() - start
        return Outcome(evaluate(rankings, cases, level, cutoffs), tuning, source, seconds=spent)

    # Our defaults are the same for every set, but were once chosen with queries of some of them in sight.
    own = ours_at(world, level, cutoffs[-1])
    yield OURS, outcome(lambda: own[DEFAULT], _about(ours_at), IN_SAMPLE)
    if world.published is not world.vectors:
        plain = ours_at(World(world.catalog, world.published), level, cutoffs[-1])
        yield OURS_PUBLISHED, outcome(lambda: plain[DEFAULT], "Ours without that training", IN_SAMPLE)
    if bench.name in RERANKED:
        yield ORACLE, outcome(lambda: oracle(world, level, cutoffs[-1], cases), _about(oracle), HEADROOM)
    tools = {**TOOL_BASELINES, **DEPENDENCY_BASELINES} if bench.dependencies else TOOL_BASELINES
    for name, baseline in (AGENT_BASELINES if level == "agent" else tools).items():
        yield name, outcome(lambda baseline=baseline: baseline(world), _about(baseline))  # type: ignore[misc]
    for name, grid in _grids(bench, level, world, own).items():
        tried = {choice: outcome(lambda rank=rank: rank).values for choice, rank in grid.items()}  # type: ignore[misc]
        yield name, chosen_by_folds(tried, cases, f"recall@{cutoffs[-1]}" if level == "agent" else "map@10")


def _grids(bench: Benchmark, level: Level, world: World, ours: Mapping[str, Rank]) -> Mapping[str, Mapping[str, Rank]]:
    """What a user would choose from, for the methods that can be told something."""
    grids = {OURS_FOLDED: ours}
    if level == "agent":
        grids["Agent-as-a-Graph, weights and N"] = {
            f"{name}, N={top_n}": agent_as_a_graph_at(world, weights, top_n=top_n)
            for name, weights in WEIGHT_GRID.items()
            for top_n in _PEAKS
        }
    elif bench.dependencies:
        grids["Graph RAG-Tool Fusion, k"] = {f"k={k}": graph_rag_at(world, k) for k in FIRST_TOOLS}
    return grids


def chosen_by_folds(tried: Mapping[str, Values], cases: Sequence[Case], criterion: str) -> Outcome:
    """Each fold's values under the choice that is best, by one metric, on the other folds."""
    groups = [case.group for case in cases]
    first = next(iter(tried.values()))

    def fit(places: Sequence[int]) -> str:
        return max(tried, key=lambda choice: sum(tried[choice][criterion][place] for place in places))

    values: dict[str, Sequence[float]] = {}
    choices: list[str] = []
    for metric in first:
        score = partial(lambda metric, choice, place: tried[choice][metric][place], metric)
        values[metric], choices = cross_validated(groups, fit, score)
    return Outcome(values, FOLDED, note=f"chosen by {criterion} from {len(tried)}: {', '.join(choices)}")


def summary(bench: Benchmark, level: Level, found: Mapping[str, Outcome]) -> dict[str, object]:
    """Means, intervals, and the paired differences to ours, as plain values."""
    groups = [case.group for case in bench.cases(level)]
    bootstrap = Bootstrap(groups)
    mine = found[OURS].values
    methods = {
        name: {
            "metrics": {m: asdict(bootstrap.mean(v)) for m, v in outcome.values.items()},
            "ours_minus_this": {m: asdict(bootstrap.difference(mine[m], v)) for m, v in outcome.values.items()},
            "tuning": outcome.tuning,
            "source": outcome.source,
            "note": outcome.note,
            "ms_a_query": round(1000 * outcome.seconds / len(groups), 2),
        }
        for name, outcome in found.items()
    }
    return {"n": len(groups), "groups": len(set(groups)), "cutoffs": list(bench.cutoffs_of(level)), "methods": methods}


def _about(function: Callable[..., object]) -> str:
    """The summary and the source of a docstring, as one line."""
    paragraphs = (function.__doc__ or "").split("\n\n")
    kept = [paragraphs[0], *(p for p in paragraphs[1:] if p.strip().startswith("Source:"))]
    return " ".join(" ".join(kept).split())
