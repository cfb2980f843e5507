"""ToolKG (GenAIK-NORA 2026): capabilities beside labels by hand, and discovery under a tool budget."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.bootstrap import Bootstrap, Interval, cell, cross_validated
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case
from callsheet.graphs import Taxonomy, default_taxonomy, load
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.capabilities import Assignments
from callsheet.retrievers.capabilities.discovery import AGENTS, CUT, WEIGHT
from callsheet.retrievers.evaluation.ranking_metrics import recall

LABELS = Path(__file__).parents[1] / "sets" / "capability_labels.json"
LEVELS: Mapping[str, int | None] = {"narrowest": None, "ten": 1, "four clusters": 0}
HALVES = ("held out", "development", "all")
COLUMNS = ("level", "half", "tools", "micro-F1", "precision", "recall")
_ABOUT = (
    "Capabilities assigned by the texts of tools, beside {} tools labelled by hand before that was written; "
    "micro-averaged, intervals by agent. What was tuned was tuned on the development half; the held-out half holds "
    "other agents. Coverage, the share of all {} tools with a capability: {}. Labelled agents that are not here: {}"
)
SET, PLAIN, BUDGETS = "livemcpbench-steps", "plain retrieval", (3, 5, 10)
METHODS: Mapping[str, Mapping[str, float]] = {
    PLAIN: {},
    "with capabilities": {"capability_weight": WEIGHT},
    "with the cut": {"cut": CUT},
    "discovery: both": {"capability_weight": WEIGHT, "cut": CUT},
}
GRID = {"capability_weight": (0.05, 0.15), "capability_sure": (0.8, 0.9), "cut": (CUT / 2, CUT, CUT * 2)}
DISCOVERY_COLUMNS = (
    "B", "method", "recall", "precision", "precision, pooled", "candidates", "recall - plain", "tuning"
)  # fmt: skip
_ABOUT_DISCOVERY = (
    "{}, {} steps with a gold tool. At most B tools are shown: by plain retrieval of {} agents, by the others of at "
    "least B, as both commands do. Precision: the share of right tools among those shown, the mean over steps or "
    "pooled. Cross-validated: {} chosen on four fifths of tasks for pooled precision at B=5, without lost recall"
)
Found = NDArray[np.float64]
"""``(n, 3)``: recall, how many of those shown are right, how many are shown; a row a step."""


class Labelled(NamedTuple):
    """One tool of an agent (with its set) in a half, with what it was labelled and what was assigned to it, as ids."""

    agent: str
    half: str
    gold: frozenset[str]
    assigned: frozenset[str]


def measure_capabilities(data: Path) -> Mapping[str, object]:
    """The body of the results file; the recorded servers are expected beside the data, as ``../fleet/manifests``."""
    places = {"fleet": data.parent / "fleet" / "manifests", "livemcpbench": data / "livemcpbench" / "tools.json"}
    assigned = {}
    for name, place in places.items():
        if place.exists():
            catalog, vectors = load(place).catalog, vectors_of_this_run()
            retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=vectors)
            assigned[name] = retriever.capabilities()
    tools, missing = labelled(json.loads(LABELS.read_text(encoding="utf-8")), assigned)
    rows = []
    for (level, depth), half in product(LEVELS.items(), HALVES):
        part = [tool for tool in tools if half in (tool.half, "all")]
        rows.append([level, half, str(len(part)), *map(cell, figures(part, default_taxonomy(), depth))])
    whole = sum(len(found.of) for found in assigned.values())
    covered = ", ".join(f"{name} {found.coverage:.1%}" for name, found in assigned.items())
    about = _ABOUT.format(len(tools), whole, covered, ", ".join(missing) or "none")
    return {"about": about, "columns": list(COLUMNS), "rows": rows}


def labelled(labels: Mapping[str, Any], assigned: Mapping[str, Assignments]) -> tuple[list[Labelled], list[str]]:
    """Every labelled tool that is there, and the agents that are not."""
    tools: list[Labelled] = []
    missing: list[str] = []
    for name, agents in labels["sets"].items():
        of = assigned[name].of if name in assigned else {}
        for agent, entry in agents.items():
            known = {tool: gold for tool, gold in entry["tools"].items() if f"{agent}/{tool}" in of}
            missing += [] if known else [f"{name} {agent}"]
            for tool, gold in known.items():
                found = frozenset(a.capability for a in of[f"{agent}/{tool}"])
                tools.append(Labelled(f"{name} {agent}", entry["half"], frozenset(gold), found))
    return tools, missing


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


def measure_discovery(bench: Benchmark, world: World) -> Mapping[str, object]:
    """The body of the results file: a row a budget and method."""
    cases = bench.cases("tool")
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    found = {name: shown(retriever, cases, settings) for name, settings in METHODS.items()}
    found["discovery, settings"], choices = _cross_validated(retriever, cases, found[PLAIN])
    bootstrap = Bootstrap([case.group for case in cases])
    rows = [
        _row(bootstrap, name, budget, of[budget], found[PLAIN][budget])
        for budget in BUDGETS
        for name, of in found.items()
    ]
    about = _ABOUT_DISCOVERY.format(bench.about, len(cases), AGENTS, ", ".join(GRID))
    return {"about": about, "columns": list(DISCOVERY_COLUMNS), "rows": rows, "choices": choices}


def shown(retriever: AgentGraphRetriever, cases: Sequence[Case], settings: Mapping[str, float]) -> Mapping[int, Found]:
    """What a selection under each budget shows for each case: with settings as ``discover``, else as ``retrieve``."""

    def row(case: Case, budget: int) -> tuple[float, int, int]:
        agents = max(AGENTS, budget) if settings else AGENTS
        selection = retriever.select(case.query, agents=agents, tools=budget, **settings)
        tools = [tool.id for tool in selection.tools]
        right = sum(any(tool in element for element in case.tools) for tool in tools)
        return recall(tools, case.tools, budget), right, len(tools)

    return {budget: np.array([row(case, budget) for case in cases], float) for budget in BUDGETS}


def _cross_validated(
    retriever: AgentGraphRetriever, cases: Sequence[Case], plain: Mapping[int, Found]
) -> tuple[Mapping[int, Found], list[dict[str, float]]]:
    grid = product(*GRID.values())
    tried = {values: shown(retriever, cases, dict(zip(GRID, values, strict=True))) for values in grid}

    def fit(places: Sequence[int]) -> tuple[float, ...]:
        return max(tried, key=lambda values: worth(tried[values], plain, places))

    chosen, choices = cross_validated([case.group for case in cases], fit)
    held_out = {
        budget: np.array([tried[values][budget][place] for place, values in enumerate(chosen)]) for budget in BUDGETS
    }
    return held_out, [dict(zip(GRID, values, strict=True)) for values in choices]


def worth(found: Mapping[int, Found], plain: Mapping[int, Found], places: Sequence[int]) -> tuple[float, float]:
    """By what a choice is made: first that no recall is lost at any budget, then pooled precision at B=5."""
    lost = sum(max(0.0, float(plain[budget][places, 0].mean() - found[budget][places, 0].mean())) for budget in BUDGETS)
    return -round(lost, 9), float(found[5][places, 1].sum() / found[5][places, 2].sum())


def _row(bootstrap: Bootstrap, name: str, budget: int, found: Found, plain: Found) -> list[str]:
    recalls, right, many = found.T
    values = (bootstrap.mean(recalls), bootstrap.mean(right / many), bootstrap.ratio(right, many))
    apart = "" if name == PLAIN else cell(bootstrap.difference(recalls, plain[:, 0]), "+.3f")
    tuning = "in sample: the defaults" if name == PLAIN else "in sample" if name in METHODS else "cross-validated"
    return [str(budget), name, *map(cell, values), f"{np.mean(many):.2f}", apart, tuning]
