"""Whether "nothing fits" is said where it should be: each query with the agents that serve it, and without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.bootstrap import Bootstrap, Interval, cell
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, Case
from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever, SelectSettings

SETS = ("livemcpbench-steps", "livemcpbench-direct", "sealtools", "metatool")
MOST = 300
COLUMNS = (
    "queries", "n", "AUROC", "refused, though its agents are there", "refused, its agents taken away",
    "the same at 5 % wrongly refused",
)  # fmt: skip
_ABOUT = (
    "Each query against the whole catalog, and without the agents that serve it. AUROC: how often the best score of an "
    "agent is higher in the first case than in the second, over all pairs of queries, ties half. Refused: the verdict "
    "nothing_fits at the default threshold, {}, or at the one that wrongly refuses 5 % of these very queries"
)


class Asked(NamedTuple):
    """A query: its group, the strength with the whole catalog and without what serves it, and whether it is refused."""

    group: str
    there: float
    away: float
    refused_there: bool
    refused_away: bool


def measure(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """The body of the results file: a row a set of queries, at most 300 of each."""
    rows = []
    for bench, world in worlds:
        if bench.name in SETS:
            found = asked(bench, world)
            rows.append([bench.name, f"{len(found):,}", *map(cell, figures(found))])
    return {"about": _ABOUT.format(SelectSettings().threshold), "columns": list(COLUMNS), "rows": rows}


def asked(bench: Benchmark, world: World) -> list[Asked]:
    """Every query of a sample, with and without what serves it; the index is made once."""
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    cases = [case for case in bench.queries if gold_agents(case, bench.catalog)]
    found = []
    for case in cases[:: -(-len(cases) // MOST) or 1]:
        both = [retriever.select(case.query, without=out) for out in ((), gold_agents(case, bench.catalog))]
        refused = (selection.verdict == "nothing_fits" for selection in both)
        found.append(Asked(case.group, *(selection.trace.strength for selection in both), *refused))
    return found


def gold_agents(case: Case, catalog: Catalog) -> tuple[str, ...]:
    """All agents that serve a query or own a tool that does, every alternative among them."""
    owners = {catalog.tool(tool).agent for element in case.tools for tool in element}
    return tuple(sorted(owners.union(*case.agents)))


def figures(asked: Sequence[Asked]) -> list[Interval]:
    """AUROC and shares with their intervals."""
    groups, there, away, refused_there, refused_away = zip(*asked, strict=True)
    bootstrap, edge = Bootstrap(groups), float(np.percentile(there, 5))
    shares = (refused_there, refused_away, [strength < edge for strength in away])
    return [bootstrap.auroc(there, away), *map(bootstrap.mean, shares)]
