"""Dependencies inferred from schemas alone, against those that people wrote: edge by edge, and by what is retrieved."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

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
EDGE_COLUMNS = ("edges of", "written", "proposed", "precision", "recall", "F1", "F1 with kind", "F1 with direct or not")
RANK_COLUMNS = ("dependencies", "mAP@10", "R@10")
_HALVES_SEED = 7
_ABOUT_EDGES = (
    "Dependencies that people wrote, against those that callsheet infer proposes from the same catalog without any. "
    "Its rules were chosen with ToolSandbox, RestBench TMDB, real MCP servers and ToolLinkOS in sight, so the figures "
    "are in sample. Ordinary tools are those that are not core. RestBench's written edges concern the first required "
    "argument of an operation only, so its second row leaves out what is proposed for other arguments"
)
_ABOUT_RANKS = (
    "ToolLinkOS, each tool's dependencies in shuffled order; ours with its defaults, but for proposed=0 where nothing "
    "is inferred. The rule gives every tool that is not core the dependency on "
    "get_wifi_status, whether it needs it or not"
)
Pair = tuple[str, str]
Kinds = Mapping[Pair, str]


class Counts(NamedTuple):
    """For one tool: edges that are proposed and written, proposed at all, written at all."""

    right: int
    proposed: int
    written: int


def measure_edges(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """A row a set of edges: precision, recall and F1 on pairs of tools, intervals drawn by the tool with the need."""
    rows = []
    for bench, _ in worlds:
        if bench.name not in SETS:
            continue
        proposals = infer_dependencies(bare(bench.catalog))
        for name, tools, targets in parts(bench):
            written = {pair: kind for pair, kind in written_in(bench.catalog).items() if pair[1] in targets}
            proposed = {pair: kind for pair, kind in kinds_of(proposals).items() if pair[1] in targets}
            rows.append(_edge_row(name, tools, written, proposed))
        if bench.name == FIRST_ONLY:
            proposed = kinds_of(edge for edge in proposals if edge.parameter == first_required(bench, edge.source))
            rows.append(_edge_row(f"{name}, to first arguments", tools, written, proposed))
    return {"about": _ABOUT_EDGES, "columns": list(EDGE_COLUMNS), "rows": rows}


def measure_ranks(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """A row a graph: what our default retriever finds with it."""
    rows: list[list[str]] = []
    for bench, world in worlds:
        if bench.name == RANKED:
            rows = [_rank_row(bench, world, name, *graph) for name, graph in graphs(bench.catalog).items()]
    return {"about": _ABOUT_RANKS, "columns": list(RANK_COLUMNS), "rows": rows}


def bare(catalog: Catalog, keep: Callable[[Tool], bool] = lambda tool: False) -> Catalog:
    """The same catalog without dependencies, but for those of tools that are kept."""
    return with_dependencies(catalog, lambda tool: tool.depends_on if keep(tool) else ())


def written_in(catalog: Catalog) -> dict[Pair, str]:
    """Every pair that a catalog holds, with its kind; of two edges of one pair the last."""
    return {(tool.id, edge.tool): edge.kind.value for tool in catalog.tools.values() for edge in tool.depends_on}


def kinds_of(proposals: Iterable[Proposal]) -> dict[Pair, str]:
    """Every pair that is proposed, with the kind of its surest edge."""
    found: dict[Pair, str] = {}
    for edge in proposals:
        found.setdefault((edge.source, edge.target), edge.kind.value)
    return found


def first_required(bench: Benchmark, tool: str) -> str | None:
    """The first argument that a tool requires."""
    return next(iter(bench.catalog.tools[tool].input_schema.get("required", ())), None)


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


def counts(tools: Iterable[str], written: Kinds, proposed: Kinds, same: Callable[[str], str]) -> list[Counts]:
    """For each tool how many of its edges are right; an edge is the same where pair and ``same`` of the kind are."""
    mine = [{(pair, same(kind)) for pair, kind in kinds.items()} for kinds in (written, proposed)]
    by_tool: dict[str, list[int]] = {tool: [0, 0, 0] for tool in tools}
    for place, edges in enumerate((mine[0] & mine[1], mine[1], mine[0])):
        for (source, _), _ in edges:
            if source in by_tool:
                by_tool[source][place] += 1
    return [Counts(*found) for found in by_tool.values()]


def figures(found: Sequence[Counts]) -> tuple[Interval, Interval, Interval]:
    """Precision, recall and F1 over all tools, each with its interval by tool."""
    ratio = Bootstrap([str(row) for row in range(len(found))]).ratio
    right = [one.right for one in found]
    proposed, written = [one.proposed for one in found], [one.written for one in found]
    both = [p + w for p, w in zip(proposed, written, strict=True)]
    return ratio(right, proposed), ratio(right, written), ratio([2 * one for one in right], both)


def _edge_row(name: str, tools: Sequence[str], written: Kinds, proposed: Kinds) -> list[str]:
    pairs = counts(tools, written, proposed, lambda kind: "")
    precision, recall, f1 = figures(pairs)
    by_kind = figures(counts(tools, written, proposed, lambda kind: kind))[2]
    by_directness = figures(counts(tools, written, proposed, lambda kind: kind.rpartition("_")[2]))[2]
    cells = map(cell, (precision, recall, f1, by_kind, by_directness))
    return [name, str(sum(one.written for one in pairs)), str(sum(one.proposed for one in pairs)), *cells]


def _rank_row(bench: Benchmark, world: World, name: str, catalog: Catalog, settings: Mapping[str, float]) -> list[str]:
    rank = ours_at(World(catalog, world.vectors), "tool", 10, settings={"": settings})[""]
    cases = bench.cases("tool")
    found = evaluate([rank(case.query) for case in cases], cases, "tool", (10,))
    bootstrap = Bootstrap([case.group for case in cases])
    return [name, *(cell(bootstrap.mean(found[metric])) for metric in ("map@10", "recall@10"))]
