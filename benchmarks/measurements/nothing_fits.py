"""Whether "nothing fits" is said where it should be: each query with the agents that serve it, and without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.bootstrap import Bootstrap, cell
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, Case
from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever, SelectSettings

SETS = ("livemcpbench-steps", "livemcpbench-direct", "sealtools", "metatool")
MOST = 300
COLUMNS = (
    "queries",
    "n",
    "AUROC",
    "refused, though its agents are there",
    "refused, its agents taken away",
    "the same at 5 % wrongly refused",
    "strength with",
    "strength without",
)
_ABOUT = (
    "Each query against the whole catalog, and against the catalog without the agents that serve it. AUROC: how often "
    "the best score of an agent is higher in the first case than in the second, over all pairs of queries, ties half. "
    "Refused: the share of verdicts nothing_fits at the default threshold, {}; at 5 % wrongly refused: "
    "at the threshold that would do that on these very queries. Agents that are left may serve a query too, though the "
    "data do not say so"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One query, asked twice.

    Attributes:
        group: Its group; intervals are drawn by group.
        there: Strength with the whole catalog.
        away: Strength without the agents that serve it.
        refused_there: Whether nothing fitted with the whole catalog: an error.
        refused_away: Whether nothing fitted without them: right.
    """

    group: str
    there: float
    away: float
    refused_there: bool
    refused_away: bool


def measure(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """The body of the results file: a row a set of queries, at most 300 of each."""
    found = {bench.name: figures(asked(bench, world)) for bench, world in worlds if bench.name in SETS}
    return {
        "about": _ABOUT.format(SelectSettings().threshold),
        "columns": list(COLUMNS),
        "rows": [[name, f"{one['n']:,}", *(cell(one[key]) for key in FIGURES)] for name, one in found.items()],
        "sets": found,
    }


def asked(bench: Benchmark, world: World) -> list[Asked]:
    """Every query of a sample, with and without what serves it; the index is made once."""
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    cases = [case for case in bench.queries if gold_agents(case, bench.catalog)]
    found = []
    for case in cases[:: -(-len(cases) // MOST) or 1]:
        there = retriever.select(case.query)
        away = retriever.select(case.query, without=gold_agents(case, bench.catalog))
        refused = (selection.verdict == "nothing_fits" for selection in (there, away))
        found.append(Asked(case.group, there.trace.strength, away.trace.strength, *refused))
    return found


def gold_agents(case: Case, catalog: Catalog) -> tuple[str, ...]:
    """All agents that serve a query or own a tool that does, every alternative among them."""
    owners = {catalog.tool(tool).agent for element in case.tools for tool in element}
    return tuple(sorted(owners.union(*case.agents)))


FIGURES = ("auroc", "refused_there", "refused_away", "refused_away_at_5", "strength_there", "strength_away")


def figures(asked: Sequence[Asked]) -> dict[str, Any]:
    """AUROC and shares with their intervals, as plain values."""
    bootstrap = Bootstrap([one.group for one in asked])
    there, away = [one.there for one in asked], [one.away for one in asked]
    edge = float(np.percentile(there, 5))
    values = (
        bootstrap.auroc(there, away),
        bootstrap.mean([one.refused_there for one in asked]),
        bootstrap.mean([one.refused_away for one in asked]),
        bootstrap.mean([strength < edge for strength in away]),
        bootstrap.mean(there),
        bootstrap.mean(away),
    )
    plain = {name: asdict(value) for name, value in zip(FIGURES, values, strict=True)}
    return {"n": len(asked), "groups": len({one.group for one in asked}), **plain}
