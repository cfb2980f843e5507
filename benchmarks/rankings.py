"""One benchmark, all methods in one run with one embedder: ours, the baselines, and an oracle as a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.documents import Document

from benchmarks.baselines import (
    AGENT_BASELINES,
    DEPENDENCY_BASELINES,
    FUSION,
    TOOL_BASELINES,
    method,
)
from benchmarks.bootstrap import Bootstrap
from benchmarks.search import Rank, World
from benchmarks.sets.cases import Benchmark, Case, Level
from callsheet.agents import chat_model
from callsheet.graphs.text.unicode import clean
from callsheet.retrievers import AgentGraphRetriever, Selection, SelectSettings
from callsheet.retrievers.evaluation.evaluator import average_precision, complete, ndcg, recall
from callsheet.retrievers.selection.decision import Judgement, ToolJudge
from callsheet.retrievers.selection.decision_models import judge_of

METRICS = {"recall": recall, "map": average_precision, "ndcg": ndcg, "complete": complete}
OURS = "Callsheet, default"
OURS_PUBLISHED = "Callsheet, published embedder"
ORACLE = "Callsheet, reranked by an oracle"
NOTHING, IN_SAMPLE, HEADROOM = "nothing tuned", "in sample", "headroom: it knows the answers"
RERANKED_FUSION = "Graph RAG-Tool Fusion, reranked"
RERANKED = ("livemcpbench-steps", "toollinkos-published", "toollinkos-shuffled", "toolsandbox")

Values = Mapping[str, Sequence[float]]
"""Metric at a cut-off, as ``recall@5`` -> one value a query."""


def ours_at(world: World, level: Level, depth: int, *, judge: ToolJudge | None = None, **changes: Any) -> Rank:
    """The agents, or the tools, of a selection of ``AgentGraphRetriever`` by default, or with these changes.

    A list of tools that is longer than a selection (``depth``) has behind it what one with a larger budget holds too.
    """
    selector = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors).selector

    def select(query: str, **more: Any) -> Selection:
        return selector.draft(query, judge, **changes, **more).selection()

    def rank(query: str) -> list[str]:
        if level == "agent":
            return [agent.id for agent in select(query, agents=depth).agents]
        chosen = select(query)
        longer = select(query, tools=depth).tools if depth > SelectSettings().tools else ()
        return list(dict.fromkeys(tool.id for tool in (*chosen.tools, *longer)))

    return rank


class Oracle:
    """A judge that puts what is wanted (query -> alternatives for each item) first, as far as it is shown it."""

    name = "oracle"

    def __init__(self, wanted: Mapping[str, Sequence[frozenset[str]]], level: Level) -> None:
        self._wanted = wanted
        self._key = "agent" if level == "agent" else "id"

    def judge(self, request: str, tools: Sequence[Document]) -> Judgement:
        """Of each set of alternatives the one that stands highest, in their old order; then the others."""
        ids = [tool.metadata[self._key] for tool in tools]
        places = ([i for i, one in enumerate(ids) if one in wanted][:1] for wanted in self._wanted.get(request, ()))
        return Judgement([tools[place].metadata["id"] for place in sorted({i for found in places for i in found})], {})


def oracle(level: Level, cases: Iterable[Case]) -> Oracle:
    """A judge that knows the answers: what is to be won there."""
    wanted: dict[str, list[frozenset[str]]] = {}
    for case in cases:  # by the query as a selector hands it on; where two are worded alike, all that both want
        wanted.setdefault(clean(case.query), []).extend(frozenset(element) for element in case.gold(level))
    return Oracle(wanted, level)


class Outcome(NamedTuple):
    """What one method did on all queries, and what was tuned for it."""

    values: Values
    tuning: str = NOTHING


def evaluate(rankings: Iterable[Sequence[str]], cases: Sequence[Case], level: Level, cutoffs: Sequence[int]) -> Values:
    """Every metric at every cut-off, query by query."""
    ranked = list(rankings)
    return {
        f"{name}@{k}": [metric(one, case.gold(level), k) for one, case in zip(ranked, cases, strict=True)]
        for name, metric in METRICS.items()
        for k in cutoffs
    }


def outcomes(bench: Benchmark, level: Level, world: World) -> Iterator[tuple[str, Outcome]]:
    """Ours first, then every baseline of this level."""
    cases, cutoffs = bench.cases(level), bench.levels[level]

    def values(rank: Rank) -> Values:
        return evaluate((rank(case.query) for case in cases), cases, level, cutoffs)

    # Our defaults are the same for every set, but were once chosen with queries of some of them in sight.
    yield OURS, Outcome(values(ours_at(world, level, cutoffs[-1])), IN_SAMPLE)
    if world.published is not world.vectors:
        plain = ours_at(World(world.catalog, world.published), level, cutoffs[-1])
        yield OURS_PUBLISHED, Outcome(values(plain), IN_SAMPLE)
    if bench.name in RERANKED:
        knowing = oracle(level, cases)
        yield ORACLE, Outcome(values(ours_at(world, level, cutoffs[-1], judge=knowing)), HEADROOM)
        if bench.dependencies:
            yield f"{RERANKED_FUSION} by an oracle", Outcome(values(method(world, FUSION, judge=knowing)), HEADROOM)
    if bench.dependencies and world.model:
        asked = judge_of(chat_model(world.model))
        yield f"{RERANKED_FUSION} by {world.model}", Outcome(values(method(world, FUSION, judge=asked)))
    tools = {**TOOL_BASELINES, **DEPENDENCY_BASELINES} if bench.dependencies else TOOL_BASELINES
    for name, baseline in (AGENT_BASELINES if level == "agent" else tools).items():
        yield name, Outcome(values(baseline(world)))


def summary(bench: Benchmark, level: Level, found: Mapping[str, Outcome]) -> dict[str, object]:
    """Means, intervals, and the paired differences to ours, as plain values."""
    groups = [case.group for case in bench.cases(level)]
    bootstrap, mine = Bootstrap(groups), found[OURS].values
    methods = {
        name: {
            "metrics": {m: bootstrap.mean(v)._asdict() for m, v in outcome.values.items()},
            "ours_minus_this": {m: bootstrap.difference(mine[m], v)._asdict() for m, v in outcome.values.items()},
            "tuning": outcome.tuning,
        }
        for name, outcome in found.items()
    }
    return {"n": len(groups), "groups": len(set(groups)), "cutoffs": list(bench.levels[level]), "methods": methods}
