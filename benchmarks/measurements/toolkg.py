"""ToolKG (GenAIK-NORA 2026): capabilities beside labels by hand, and discovery under a tool budget beside text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.bootstrap import Bootstrap, Interval, cell
from benchmarks.fleet import FOLDER, read_tasks
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Taxonomy, load, shipped_taxonomy
from callsheet.graphs.capabilities.taxonomy import SHIPPED
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.capabilities import Assignments
from callsheet.retrievers.discovery import AGENTS, CUT, WEIGHT
from callsheet.retrievers.evaluation.evaluator import recall

LABELS = Path(__file__).parents[1] / "sets" / "capability_labels.json"
LEVELS: Mapping[str, Mapping[str, int | None]] = {
    "default": {"ten": None, "four clusters": 0},
    "detailed": {"47 narrowest": None, "ten": 1, "four clusters": 0},
}
COLUMNS = ("taxonomy", "level", "half", "tools", "micro-F1", "precision", "recall")
_ABOUT = (
    "Capabilities by the texts of tools, beside {} tools labelled by hand; micro-averaged, intervals by agent. Tuned on"
    " the development half; the held-out half has other agents. Coverage, the share of {} tools with a capability: {}"
)
SETS, BUDGETS = ("livemcpbench-steps", "mcp-atlas-steps", "mcp-atlas-requests"), (3, 5, 10)
TEXT, RETRIEVAL = "text alone", "retrieval"
METHODS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    RETRIEVAL: ("default", {}),
    "discovery": ("default", {"capability_weight": WEIGHT, "cut": CUT}),
    "discovery, detailed": ("detailed", {"capability_weight": WEIGHT, "cut": CUT}),
}
"""Method -> its taxonomy, and what it changes in a selection by default."""
DISCOVERY_COLUMNS = "set|B|method|recall|precision|pooled|candidates|recall: win, tie, loss|precision: win, tie, loss"
_ABOUT_DISCOVERY = (
    "At most B tools for each query of {}: by the cosine of name and description (text alone), by a selection of "
    f"{AGENTS} agents (retrieval), by discoveries of at least B agents. Recall: the share of the right tools that are "
    "shown; precision: the share of right ones among those shown, the mean over queries or pooled. Win, tie, loss: "
    "beside text alone. Settings were chosen on LiveMCPBench, the default taxonomy's phrases with MCP-Atlas in view"
)
Found = NDArray[np.float64]
"""``(n, 3)``: recall, how many of those shown are right, how many are shown; a row a query."""


class Labelled(NamedTuple):
    """One tool of an agent (with its set) in a half, with what it was labelled and what was assigned to it, as ids."""

    agent: str
    half: str
    gold: frozenset[str]
    assigned: frozenset[str]


def measure_capabilities(data: Path) -> Mapping[str, object]:
    """The body of the results file; the recorded servers are expected beside the data, as ``../fleet/manifests``."""
    places = {"fleet": data / FOLDER / "manifests", "livemcpbench": data / "livemcpbench" / "tools.json"}
    catalogs = {name: load(place).catalog for name, place in places.items() if place.exists()}
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    rows, covered, tools = [], [], list[Labelled]()
    for taxonomy in SHIPPED:
        assigned = {name: _retriever(catalog, taxonomy).capabilities() for name, catalog in catalogs.items()}
        covered += [f"{taxonomy}, {name} {found.coverage:.1%}" for name, found in assigned.items()]
        tools = labelled(labels, taxonomy, assigned)
        for (level, depth), half in product(LEVELS[taxonomy].items(), ("held out", "development", "all")):
            part = [tool for tool in tools if half in (tool.half, "all")]
            cells = map(cell, figures(part, shipped_taxonomy(taxonomy), depth))
            rows.append([taxonomy, level, half, str(len(part)), *cells])
    whole = sum(len(catalog.tools) for catalog in catalogs.values())
    return {"about": _ABOUT.format(len(tools), whole, "; ".join(covered)), "columns": list(COLUMNS), "rows": rows}


def _retriever(catalog: Any, taxonomy: str) -> AgentGraphRetriever:
    known = {"embeddings": vectors_of_this_run(), "taxonomy": taxonomy}
    return AgentGraphRetriever.from_catalog(catalog, index=":memory:", **known)


def labelled(labels: Mapping[str, Any], taxonomy: str, assigned: Mapping[str, Assignments]) -> list[Labelled]:
    """Every tool that is there, with its labels of this taxonomy."""
    tools: list[Labelled] = []
    for name, agents in labels["sets"].items():
        of = assigned[name].of if name in assigned else {}
        for agent, entry in agents.items():
            for tool, gold in entry["tools"][taxonomy].items():
                if f"{agent}/{tool}" in of:
                    found = frozenset(a.capability for a in of[f"{agent}/{tool}"])
                    tools.append(Labelled(f"{name} {agent}", entry["half"], frozenset(gold), found))
    return tools


def figures(tools: Sequence[Labelled], taxonomy: Taxonomy, depth: int | None) -> tuple[Interval, Interval, Interval]:
    """Micro-averaged F1 = 2 TP / (2 TP + FP + FN), precision, recall at a depth of the taxonomy; None: as labelled."""

    def lifted(names: frozenset[str]) -> frozenset[str]:
        return names if depth is None else frozenset(taxonomy.at(depth, name) for name in names)

    pairs = [(lifted(tool.gold), lifted(tool.assigned)) for tool in tools]
    both = [len(gold & found) for gold, found in pairs]
    bootstrap = Bootstrap([tool.agent for tool in tools])
    gold, found = [len(gold) for gold, _ in pairs], [len(found) for _, found in pairs]
    f1 = bootstrap.ratio(np.multiply(2, both), np.add(gold, found))
    return f1, bootstrap.ratio(both, found), bootstrap.ratio(both, gold)


def measure_discovery(benches: Iterable[tuple[Benchmark, World]], data: Path) -> Mapping[str, object]:
    """The body of the results file, with the tasks of the fleet beside the data if they are there."""
    known = [*(one for one in benches if one[0].name in SETS), *fleet_tasks(data / FOLDER)]
    rows = [row for bench, world in known for row in _rows(bench, world)]
    about = "; ".join(f"{bench.about} ({len(bench.cases('tool'))})" for bench, _ in known)
    return {"about": _ABOUT_DISCOVERY.format(about), "columns": DISCOVERY_COLUMNS.split("|"), "rows": rows}


def fleet_tasks(folder: Path) -> Iterator[tuple[Benchmark, World]]:
    """The tasks over recorded servers, whose right tools are those of the gold calls."""
    if folder.is_dir():
        catalog, tasks = load(folder / "manifests").catalog, read_tasks(folder / "tasks.json", folder)
        calls = {task.id: wanted([f"{call['server']}/{call['tool']}"] for call in task.gold) for task in tasks}
        cases = (Case(task.id, task.task, task.id, (), calls[task.id]) for task in tasks)
        about = f"fleet, whole tasks: {len(catalog.agents)} MCP servers, {len(catalog.tools)} tools"
        yield Benchmark("fleet", about, catalog, tuple(cases), {}), World(catalog, vectors_of_this_run())


def _rows(bench: Benchmark, world: World) -> Iterator[list[str]]:
    cases = bench.cases("tool")
    bootstrap, found = (
        Bootstrap([case.group for case in cases]),
        {TEXT: shown(cases, lambda q, b: world.tools.search(q)[:b])},
    )
    for name, (taxonomy, settings) in METHODS.items():
        found[name] = shown(cases, _selected(_retriever(world.catalog, taxonomy), settings))
    for budget, (name, of) in product(BUDGETS, found.items()):
        (recalls, right, many), (text, text_right, text_many) = of[budget].T, found[TEXT][budget].T
        means = bootstrap.mean(recalls), bootstrap.mean(right / many), bootstrap.ratio(right, many)
        pairs = (recalls, text), (right / many, text_right / text_many)
        against = ["" if name == TEXT else win_tie_loss(*pair) for pair in pairs]
        yield [bench.name, str(budget), name, *map(cell, means), f"{np.mean(many):.2f}", *against]


def _selected(retriever: AgentGraphRetriever, settings: Mapping[str, float]) -> Callable[[str, int], list[str]]:
    def select(query: str, budget: int) -> list[str]:
        agents = max(AGENTS, budget) if settings else AGENTS
        return [tool.id for tool in retriever.select(query, agents=agents, tools=budget, **settings).tools]

    return select


def shown(cases: Sequence[Case], select: Callable[[str, int], list[str]]) -> Mapping[int, Found]:
    """What the tools that are selected for a query and a budget are worth for each case."""

    def row(case: Case, budget: int) -> tuple[float, int, int]:
        tools = select(case.query, budget)
        right = sum(any(tool in element for element in case.tools) for tool in tools)
        return recall(tools, case.tools, budget), right, len(tools)

    return {budget: np.array([row(case, budget) for case in cases], float) for budget in BUDGETS}


def win_tie_loss(one: Found, other: Found) -> str:
    """The numbers of queries where the one is more than, as much as, and less than the other."""
    return f"{np.sum(one > other)}, {np.sum(one == other)}, {np.sum(one < other)}"
