"""One benchmark, all methods, in one run with one embedder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.methods.baselines import (
    AGENT_BASELINES,
    DEPENDENCY_BASELINES,
    FIRST_TOOLS,
    TOOL_BASELINES,
    WEIGHT_GRID,
    agent_as_a_graph_at,
    graph_rag_at,
)
from benchmarks.methods.oracle import HEADROOM, ORACLE, SETS as RERANKED, oracle
from benchmarks.methods.ours import DEFAULT, ours_at
from benchmarks.methods.search import Rank, World
from benchmarks.report.statistics import Bootstrap, cross_validated
from benchmarks.sets.cases import Benchmark, Case, Level
from callsheet.retrievers.evaluation.ranking_metrics import average_precision, complete, ndcg, recall

METRICS = {"recall": recall, "map": average_precision, "ndcg": ndcg, "complete": complete}
OURS = "Callsheet, default"
OURS_FOLDED = "Callsheet, settings"
OURS_PUBLISHED = "Callsheet, published embedder"
NOTHING, FOLDED, IN_SAMPLE = "nothing tuned", "cross-validated", "in sample"
_PEAKS = (10, 20, 50, 100)

Values = Mapping[str, Sequence[float]]
"""Metric at a cut-off, as ``recall@5`` -> one value a query."""
Rankings = Sequence[Sequence[str]]
"""One ranking a query."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did on all queries.

    Attributes:
        values: Each metric's values.
        tuning: ``nothing tuned``, ``cross-validated`` or ``in sample``.
        source: Where the method is from: the first lines of its docstring.
        note: What more there is to say, such as what each fold chose.
        seconds: What all queries took, embedding apart where it was shared.
    """

    values: Values
    tuning: str = NOTHING
    source: str = ""
    note: str = ""
    seconds: float = 0.0


def evaluate(rankings: Rankings, cases: Sequence[Case], level: Level, cutoffs: Sequence[int]) -> Values:
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
        yield (
            OURS_PUBLISHED,
            outcome(lambda: plain[DEFAULT], "Ours without that training", IN_SAMPLE),
        )
    if bench.name in RERANKED:
        yield ORACLE, outcome(lambda: oracle(world, level, cutoffs[-1], cases), _about(oracle), HEADROOM)
    for name, baseline in baselines(bench, level).items():
        yield name, outcome(lambda baseline=baseline: baseline(world), _about(baseline))  # type: ignore[misc]
    for name, grid in _grids(bench, level, world, own).items():
        tried = {choice: outcome(lambda rank=rank: rank).values for choice, rank in grid.items()}  # type: ignore[misc]
        yield name, chosen_by_folds(tried, cases, f"recall@{cutoffs[-1]}" if level == "agent" else "map@10")


def baselines(bench: Benchmark, level: Level) -> Mapping[str, Callable[[World], Rank]]:
    """Every baseline that applies."""
    if level == "agent":
        return AGENT_BASELINES
    return {**TOOL_BASELINES, **DEPENDENCY_BASELINES} if bench.dependencies else TOOL_BASELINES


def _grids(bench: Benchmark, level: Level, world: World, ours: Mapping[str, Rank]) -> Mapping[str, Mapping[str, Rank]]:
    """What a user would choose from, for the methods that can be told something."""
    own = {OURS_FOLDED: ours}
    if level == "agent":
        return own | {
            "Agent-as-a-Graph, weights and N": {
                f"{name}, N={top_n}": agent_as_a_graph_at(world, weights, top_n=top_n)
                for name, weights in WEIGHT_GRID.items()
                for top_n in _PEAKS
            }
        }
    if bench.dependencies:
        return own | {"Graph RAG-Tool Fusion, k": {f"k={k}": graph_rag_at(world, k) for k in FIRST_TOOLS}}
    return own


def chosen_by_folds(tried: Mapping[str, Values], cases: Sequence[Case], criterion: str) -> Outcome:
    """Each fold's values under the choice that is best, by one metric, on the other folds."""
    groups = [case.group for case in cases]
    first = next(iter(tried.values()))

    def fit(places: Sequence[int]) -> str:
        return max(tried, key=lambda choice: sum(tried[choice][criterion][place] for place in places))

    values: dict[str, Sequence[float]] = {}
    choices: list[str] = []
    for metric in first:
        values[metric], choices = cross_validated(
            groups,
            fit,
            lambda choice, place, metric=metric: tried[choice][metric][place],  # type: ignore[misc]
        )
    return Outcome(values, FOLDED, note=f"chosen by {criterion} from {len(tried)}: {', '.join(choices)}")


def summary(bench: Benchmark, level: Level, found: Mapping[str, Outcome]) -> dict[str, object]:
    """Means, intervals, and the paired differences to ours, as plain values."""
    groups = [case.group for case in bench.cases(level)]
    bootstrap = Bootstrap(groups)
    mine = found[OURS].values
    methods = {}
    for name, outcome in found.items():
        methods[name] = {
            "metrics": {m: asdict(bootstrap.mean(v)) for m, v in outcome.values.items()},
            "ours_minus_this": {m: asdict(bootstrap.difference(mine[m], v)) for m, v in outcome.values.items()},
            "tuning": outcome.tuning,
            "source": outcome.source,
            "note": outcome.note,
            "ms_a_query": round(1000 * outcome.seconds / len(groups), 2),
        }
    return {"n": len(groups), "groups": len(set(groups)), "cutoffs": list(bench.cutoffs_of(level)), "methods": methods}


def _about(function: Callable[..., object]) -> str:
    """The summary and the source of a docstring, as one line."""
    paragraphs = (function.__doc__ or "").split("\n\n")
    kept = [paragraphs[0], *(p for p in paragraphs[1:] if p.strip().startswith("Source:"))]
    return " ".join(" ".join(kept).split())
