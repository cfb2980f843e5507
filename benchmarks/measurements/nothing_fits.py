"""Whether "nothing fits" is said where it should be: each query with the agents that serve it, and without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.bootstrap import Bootstrap, Interval, cell, short
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, Case
from callsheet.graphs import Catalog
from callsheet.graphs.trust.policy import view_of
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.selection.result import Verdict

SETS = ("livemcpbench-steps", "livemcpbench-direct", "sealtools", "metatool")
MOST = 300
_CASES = ("there", "taken away")
_SHARES = tuple(f"{said}, its agents {case}" for said in ("refused", "found") for case in _CASES)
COLUMNS = ("queries", "n", "AUROC", *_SHARES, "Brier", "said / was")
_ABOUT = (
    "Each query with the whole catalog, and without the agents that serve it. AUROC: share of pairs in which the first "
    "has the higher probability. Refused and found: shares with the verdicts nothing_fits and found; the rest are "
    "unsure. Brier: mean squared error of the probability; that of a coin is .25. Said / was: mean probability, and "
    "share of the first case, where it is 0 to .2, .2 to .4 ..."
)


class Asked(NamedTuple):
    """A query: its group, and the probability and the verdict with the whole catalog and without what serves it."""

    group: str
    there: float
    away: float
    verdict_there: Verdict
    verdict_away: Verdict


def measure(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """The body of the results file: a row a set of queries, at most 300 of each."""
    sets = [(bench.name, asked(bench, world)) for bench, world in worlds if bench.name in SETS]
    rows = [[name, f"{len(found):,}", *map(cell, figures(found)), reliability(found)] for name, found in sets]
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def asked(bench: Benchmark, world: World) -> list[Asked]:
    """Every query of a sample, with and without what serves it; the index is made once."""
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    whole, found = retriever.selector, list[Asked]()
    cases = [case for case in bench.queries if gold_agents(case, bench.catalog)]
    for case in cases[:: -(-len(cases) // MOST) or 1]:
        gone = gold_agents(case, bench.catalog)
        rest = whole.within(view_of(whole.catalog, lambda tool, gone=gone: tool.agent not in gone))  # type: ignore[misc]
        both = [selector.select(case.query) for selector in (whole, rest)]
        verdicts = (selection.verdict for selection in both)
        found.append(Asked(case.group, *(selection.probability or 0.0 for selection in both), *verdicts))
    return found


def gold_agents(case: Case, catalog: Catalog) -> tuple[str, ...]:
    """All agents that serve a query or own a tool that does, every alternative among them."""
    owners = {catalog.tool(tool).agent for element in case.tools for tool in element}
    return tuple(sorted(owners.union(*case.agents)))


def figures(asked: Sequence[Asked]) -> list[Interval]:
    """AUROC, shares and Brier score with their intervals."""
    groups, there, away, *verdicts = zip(*asked, strict=True)
    bootstrap = Bootstrap(groups)
    brier = [((1 - p) ** 2 + q**2) / 2 for p, q in zip(there, away, strict=True)]
    shares = [[said == verdict for said in case] for verdict in ("nothing_fits", "found") for case in verdicts]
    return [bootstrap.auroc(there, away), *map(bootstrap.mean, (*shares, brier))]


def reliability(asked: Sequence[Asked]) -> str:
    """Mean probability and share of the first case, for each fifth of the probabilities."""
    said = np.array([[one.there, one.away] for one in asked])
    fifths = [fifth for low in range(5) if (fifth := (said >= low / 5) & (said < (low + 1) / 5)).any()]
    pairs = ((said[fifth].mean(), fifth[:, 0].sum() / fifth.sum()) for fifth in fifths)
    return ", ".join(f"{short(mean, '.2f')} / {short(share, '.2f')}" for mean, share in pairs)
