"""Dependencies inferred from schemas alone, against those that people wrote: edge by edge, and by what is retrieved."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set

import numpy as np

from benchmarks.bootstrap import Bootstrap, Interval, cell
from benchmarks.rankings import evaluate, ours_at
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, with_dependencies
from callsheet.graphs import Catalog, DependencyKind, Tool
from callsheet.graphs.dependencies import Proposal, attach
from callsheet.retrievers.inference import infer_dependencies

SETS = ("toollinkos-shuffled", "toolsandbox", "restbench")
RANKED = SETS[0]
FIRST_ONLY = SETS[2]
"""The set whose written edges are, by construction, of the first required argument of each tool only."""
EDGE_COLUMNS = ("edges of", "written", "proposed", "precision", "recall", "F1")
RANK_COLUMNS = ("dependencies", "mAP@10", "R@10")
_HALVES_SEED = 7
_ABOUT_EDGES = (
    "Dependencies that people wrote, against those that callsheet infer proposes from the same catalog without any. "
    "Its rules were chosen with these sets in sight, so the figures are in sample. Ordinary tools are those that are "
    "not core. RestBench's edges concern first required arguments only: its second row leaves out the others"
)
_ABOUT_RANKS = (
    "ToolLinkOS, each tool's dependencies in shuffled order; ours with its defaults, but for proposed=0 where nothing "
    "is inferred. The rule gives every tool that is not core the dependency on get_wifi_status, needed or not"
)
Pair = tuple[str, str]


Counts = tuple[int, int, int]
"""For one tool: edges that are proposed and written, proposed at all, written at all."""


def measure_edges(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """A row a set of edges: precision, recall and F1 on pairs of tools, intervals drawn by the tool with the need."""
    rows = []
    for bench in (bench for bench, _ in worlds if bench.name in SETS):
        proposals, written = infer_dependencies(bare(bench.catalog)), written_in(bench.catalog)
        for name, tools, targets in parts(bench):
            of = ({pair for pair in pairs if pair[1] in targets} for pairs in (written, pairs_of(proposals)))
            rows.append(_edge_row(name, counts(tools, *of)))
        if bench.name == FIRST_ONLY:
            required = {tool.id: tool.input_schema.get("required") for tool in bench.catalog.tools.values()}
            first = (edge for edge in proposals if edge.parameter in (required[edge.source] or ())[:1])
            rows.append(_edge_row(f"{name}, to first arguments", counts(tools, written, pairs_of(first))))
    return {"about": _ABOUT_EDGES, "columns": list(EDGE_COLUMNS), "rows": rows}


def measure_ranks(bench: Benchmark, world: World) -> Mapping[str, object]:
    """A row a graph: what our default retriever finds with it."""
    rows = [_rank_row(bench, world, name, *graph) for name, graph in graphs(bench.catalog).items()]
    return {"about": _ABOUT_RANKS, "columns": list(RANK_COLUMNS), "rows": rows}


def bare(catalog: Catalog, keep: Callable[[Tool], bool] = lambda tool: False) -> Catalog:
    """The same catalog without dependencies, but for those of tools that are kept."""
    return with_dependencies(catalog, lambda tool: tool.depends_on if keep(tool) else ())


def written_in(catalog: Catalog) -> set[Pair]:
    """Every pair of a tool and one that it needs in a catalog."""
    return {(tool.id, edge.tool) for tool in catalog.tools.values() for edge in tool.depends_on}


def pairs_of(proposals: Iterable[Proposal]) -> set[Pair]:
    """Every pair that is proposed."""
    return {(edge.source, edge.target) for edge in proposals}


def parts(bench: Benchmark) -> list[tuple[str, list[str], Collection[str]]]:
    """The name of each part of a set, the tools that have the need, and the tools that are needed."""
    ids = sorted(bench.catalog.tools)
    whole = (bench.name.partition("-")[0], ids, ids)
    if bench.name != RANKED:
        return [whole]
    random.Random(_HALVES_SEED).shuffle(mixed := list(ids))
    half = len(mixed) // 2
    ordinary = [tool.id for tool in bench.catalog.tools.values() if not tool.core]
    return [
        whole,
        ("toollinkos, first half of the tools", mixed[:half], ids),
        ("toollinkos, second half", mixed[half:], ids),
        ("toollinkos, to ordinary tools", ids, ordinary),
        ("toollinkos, to ordinary tools, second half", mixed[half:], ordinary),
    ]


def graphs(catalog: Catalog) -> Mapping[str, tuple[Catalog, Mapping[str, float]]]:
    """The graphs that are compared, by what is in them: the tools with it, and settings that it needs."""
    none, core = bare(catalog), bare(catalog, keep=lambda tool: tool.core)
    accepted = [edge.model_copy(update={"accept": True}) for edge in infer_dependencies(none)]
    # Declared without looking which tools really need the network.
    wifi = next(tool for tool in catalog.tools if tool.endswith("/get_wifi_status"))
    needing = (tool.id for tool in catalog.tools.values() if not tool.core and tool.id != wifi)
    kind = DependencyKind.TOOL_DIRECTLY
    network = [Proposal(source=tool, target=wifi, kind=kind, accept=True) for tool in needing]
    off, default = {"proposed": 0.0}, dict[str, float]()
    return {
        "none, nothing inferred": (none, off),
        "none, inferred by default": (none, default),
        "inferred, all accepted": (beside(none, accepted), default),
        "one rule, inferred by default": (beside(none, network), default),
        "one rule, those of core tools declared, inferred by default": (beside(core, network), default),
        "one rule, those of core tools declared, nothing inferred": (beside(core, network), off),
        "as written, nothing inferred": (catalog, off),
        "as written, inferred by default": (catalog, default),
    }


def beside(catalog: Catalog, edges: Iterable[Proposal]) -> Catalog:
    """A catalog with a file of dependencies beside it; what would make a circle of requirements is left indirect."""
    agents, _ = attach(catalog.agents, [("benchmark", edges)])
    return Catalog(agents=agents)


def counts(tools: Iterable[str], written: Set[Pair], proposed: Set[Pair]) -> list[Counts]:
    """For each tool how many of its edges are right."""
    of = [Counter(source for source, _ in pairs) for pairs in (written & proposed, proposed, written)]
    return [(of[0][tool], of[1][tool], of[2][tool]) for tool in tools]


def figures(found: Sequence[Counts]) -> tuple[Interval, Interval, Interval]:
    """Precision, recall and F1 over all tools, each with its interval by tool."""
    ratio = Bootstrap([str(row) for row in range(len(found))]).ratio
    right, proposed, written = np.array(found, float).T
    return ratio(right, proposed), ratio(right, written), ratio(2 * right, proposed + written)


def _edge_row(name: str, found: Sequence[Counts]) -> list[str]:
    _, proposed, written = np.sum(found, axis=0)
    return [name, str(written), str(proposed), *map(cell, figures(found))]


def _rank_row(bench: Benchmark, world: World, name: str, catalog: Catalog, settings: Mapping[str, float]) -> list[str]:
    rank = ours_at(World(catalog, world.vectors), "tool", 10, **settings)
    cases = bench.cases("tool")
    found = evaluate(map(rank, (case.query for case in cases)), cases, "tool", (10,))
    bootstrap = Bootstrap([case.group for case in cases])
    return [name, *(cell(bootstrap.mean(found[metric])) for metric in ("map@10", "recall@10"))]
