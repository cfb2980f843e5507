"""What the papers show of their own methods, on these data: weights and origins, limits and kinds of error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from benchmarks.baselines import FUSION, WEIGHT_GRID, fusion_at, method
from benchmarks.bootstrap import Bootstrap, cell, short
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, Case
from callsheet.graphs import NodeKind
from callsheet.retrievers import METHODS, average_precision, recall

STEPS, LINKED = "livemcpbench-steps-single", ("toollinkos-published", "toollinkos-shuffled", "toolsandbox")
FEW, MANY, TOP, CUT, MOST = 10, 50, 5, 10, 400
LIMITS = (1, 2, 3, 5, 8, 10, None)
ERRORS = ("search", "cut", "order")
_FIGURE = (
    "Agent-as-a-Graph on LiveMCPBench (steps-single), R@5 by weights of agents : tools (its figure 2), with Eq. 3 "
    "over the first N nodes of one list (section 3.2), or over N agents and N tools (Algorithm 1, lines 1 and 2), and "
    "with Eq. 2 over two lists. From agents: the share of the first five that an agent's own node brought, N = 50"
)
_ERRORS = (
    "Graph RAG-Tool Fusion, k = 3, at most 400 queries of each set: mAP@10 by d_limit; errors by their first cause. "
    "Search: a wanted tool is neither found nor reached from one that is. Cut: all are, but one is after the first 10. "
    "Order: all are among the 10, but an unwanted one is before a wanted one"
)


def agent_as_a_graph(bench: Benchmark, world: World) -> Mapping[str, object]:
    """The body of a results file: a row for each pair of weights."""
    cases = bench.cases("agent")
    bootstrap, rows = Bootstrap([case.group for case in cases]), list[list[str]]()
    for name, weights in WEIGHT_GRID.items():
        ways = {
            **{f"Eq. 3, N = {n}": fusion_at(world, "agent-as-a-graph", weights, top_n=n) for n in (FEW, MANY)},
            **{f"Eq. 3, {n} + {n}": fusion_at(world, "agents-and-tools", weights, top_n=n) for n in (FEW, MANY)},
            f"Eq. 2, N = {MANY}": fusion_at(world, "weighted-rrf", weights, top_n=MANY),
        }
        found = ([recall(rank(case.query), case.agents, TOP) for case in cases] for rank in ways.values())
        of_agents = fmean(own for case in cases for own in _by_own_node(world, case.query, weights))
        rows.append([name, *(cell(bootstrap.mean(values)) for values in found), f"{of_agents:.1%}"])
    return {"about": _FIGURE, "columns": ["agents : tools", *ways, "from agents"], "rows": rows}


def _by_own_node(world: World, query: str, weights: Mapping[NodeKind, float]) -> list[bool]:
    """Of the first five agents by Eq. 3 over N agents and N tools, whether its own node brought it."""
    given = {"agent_weight": weights["agent"], "tool_weight": weights["tool"], "pool": MANY, "agents": TOP}
    settings = {**METHODS["agents-and-tools"].to_dict(), **given}
    trace = world.literature("plain").selector.select(query, **settings).trace
    return [terms[0].node == agent for agent, terms in trace.contributions.items()]


def tool_fusion(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """The body of a results file: a row for each limit and each kind of error, a column a set."""
    columns: dict[str, list[str]] = {}
    for bench, world in worlds:
        cases = bench.sample(MOST).cases("tool")
        bootstrap, column = Bootstrap([case.group for case in cases]), list[str]()
        for limit in LIMITS:
            rank = method(world, FUSION, d_limit=limit)
            found = [rank(case.query) for case in cases]
            aps = [average_precision(one, case.tools, CUT) for one, case in zip(found, cases, strict=True)]
            column.append(cell(bootstrap.mean(aps)))
        whole = method(world, FUSION, tools=len(world.catalog.tools))
        causes = [error(whole(case.query), case) for case in cases]
        columns[bench.name] = [*column, *(short(causes.count(kind) / len(causes)) for kind in ERRORS)]
    titles = [f"mAP@10, d_limit {limit or 'none'}" for limit in LIMITS] + [f"error: {kind}" for kind in ERRORS]
    rows = [list(row) for row in zip(titles, *columns.values(), strict=True)]
    return {"about": _ERRORS, "columns": ["", *columns], "rows": rows}


def error(ranked: Sequence[str], case: Case) -> str:
    """The first cause of an error in an uncut list; empty if there is none."""
    places = [min((ranked.index(tool) for tool in wanted if tool in ranked), default=-1) for wanted in case.tools]
    if -1 in places:
        return "search"
    return "cut" if max(places) >= CUT else "order" if max(places) >= len(set(places)) else ""
