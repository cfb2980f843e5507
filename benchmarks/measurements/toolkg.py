"""ToolKG (GenAIK-NORA 2026): capabilities beside labels by hand, and discovery under a tool budget."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.bootstrap import Bootstrap, Interval, cell, folds
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
    "Capabilities assigned by the texts of tools, without a language model, beside {} tools labelled by hand before "
    "that was written; micro-averaged, intervals by agent. What was tuned was tuned on the development half; the "
    "held-out half holds other agents. Coverage, the share of all {} tools with a capability: {}. Of agents whose "
    "labels are given, these are not here: {}"
)
SET = "livemcpbench-steps"
BUDGETS = (3, 5, 10)
PLAIN = "plain retrieval"
METHODS: Mapping[str, Mapping[str, float]] = {
    PLAIN: {},
    "with capabilities": {"capability_weight": WEIGHT},
    "with the cut": {"cut": CUT},
    "discovery: both": {"capability_weight": WEIGHT, "cut": CUT},
}
GRID = {"capability_weight": (0.05, 0.15), "capability_sure": (0.8, 0.9), "cut": (CUT / 2, CUT, CUT * 2)}
DISCOVERY_COLUMNS = (
    "B",
    "method",
    "recall",
    "precision",
    "precision, pooled",
    "candidates",
    "recall - plain",
    "tuning",
)
_ABOUT_DISCOVERY = (
    "{}, {} steps with a gold tool. At most B tools are shown: by plain retrieval of {} agents, by the others of at "
    "least B, as both commands do. Precision: the share of right tools among those shown, the mean over steps; pooled: "
    "over all tools shown together. Cross-validated: {} chosen on four fifths of tasks for the highest pooled "
    "precision at B=5 among the choices that lose no recall there at any B"
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
    """The body of the results file; empty where none of the labelled catalogs is there.

    Args:
        data: The folder of the data sets; the recorded servers are expected beside it, as ``../fleet/manifests``.
    """
    places = {"fleet": data.parent / "fleet" / "manifests", "livemcpbench": data / "livemcpbench" / "tools.json"}
    assigned = {
        name: AgentGraphRetriever.from_catalog(
            load(place).catalog, index=":memory:", embeddings=vectors_of_this_run()
        ).capabilities()
        for name, place in places.items()
        if place.exists()
    }
    if not assigned:
        return {}
    tools, missing = labelled(json.loads(LABELS.read_text(encoding="utf-8")), assigned)
    measured: list[dict[str, Any]] = []
    for level, depth in LEVELS.items():
        for half in HALVES:
            part = [tool for tool in tools if half in (tool.half, "all")]
            values = {name: asdict(value) for name, value in figures(part, default_taxonomy(), depth).items()}
            measured.append({"level": level, "half": half, "n": len(part), **values})
    whole = sum(len(found.of) for found in assigned.values())
    covered = ", ".join(f"{name} {found.coverage:.1%}" for name, found in assigned.items())
    return {
        "about": _ABOUT.format(len(tools), whole, covered, ", ".join(missing) or "none"),
        "columns": list(COLUMNS),
        "rows": [
            [one["level"], one["half"], str(one["n"]), *(cell(one[name]) for name in ("f1", "precision", "recall"))]
            for one in measured
        ],
        "levels_measured": measured,
        "coverage": {name: found.coverage for name, found in assigned.items()},
    }


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


def figures(tools: Sequence[Labelled], taxonomy: Taxonomy, depth: int | None) -> dict[str, Interval]:
    """Micro-averaged precision, recall and F1 at one depth of the taxonomy; None: as labelled.

    ::

        F1 = 2 TP / (2 TP + FP + FN), summed over all tools
    """

    def lifted(names: frozenset[str]) -> frozenset[str]:
        return names if depth is None else frozenset(taxonomy.at(depth, name) for name in names)

    pairs = [(lifted(tool.gold), lifted(tool.assigned)) for tool in tools]
    both = [len(gold & found) for gold, found in pairs]
    bootstrap = Bootstrap([tool.agent for tool in tools])
    return {
        "f1": bootstrap.ratio([2 * n for n in both], [len(gold) + len(found) for gold, found in pairs]),
        "precision": bootstrap.ratio(both, [len(found) for _, found in pairs]),
        "recall": bootstrap.ratio(both, [len(gold) for gold, _ in pairs]),
    }


def measure_discovery(bench: Benchmark, world: World) -> Mapping[str, object]:
    """The body of the results file: a row a budget and method."""
    cases = bench.cases("tool")
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    found = {name: shown(retriever, cases, settings) for name, settings in METHODS.items()}
    folded, choices = _cross_validated(retriever, cases, found[PLAIN])
    found["discovery, settings"] = folded
    bootstrap = Bootstrap([case.group for case in cases])
    measured = [
        _figures(bootstrap, name, budget, of[budget], found[PLAIN][budget])
        for budget in BUDGETS
        for name, of in found.items()
    ]
    return {
        "about": _ABOUT_DISCOVERY.format(bench.about, len(cases), AGENTS, ", ".join(GRID)),
        "columns": list(DISCOVERY_COLUMNS),
        "rows": [_row(entry) for entry in measured],
        "measured": measured,
        "choices": choices,
    }


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
    held_out = {budget: np.zeros((len(cases), 3)) for budget in BUDGETS}
    choices = []
    for fold in folds([case.group for case in cases]):
        rest = sorted(set(range(len(cases))) - set(fold))
        best = max(tried, key=lambda values: worth(tried[values], plain, rest))
        choices.append(dict(zip(GRID, best, strict=True)))
        for budget in BUDGETS:
            held_out[budget][fold] = tried[best][budget][fold]
    return held_out, choices


def worth(found: Mapping[int, Found], plain: Mapping[int, Found], places: Sequence[int]) -> tuple[float, float]:
    """By what a choice is made: first that no recall is lost at any budget, then pooled precision at B=5."""
    lost = sum(max(0.0, float(plain[budget][places, 0].mean() - found[budget][places, 0].mean())) for budget in BUDGETS)
    return -round(lost, 9), float(found[5][places, 1].sum() / found[5][places, 2].sum())


def _figures(bootstrap: Bootstrap, name: str, budget: int, found: Found, plain: Found) -> dict[str, Any]:
    return {
        "budget": budget,
        "method": name,
        "recall": asdict(bootstrap.mean(found[:, 0].tolist())),
        "precision": asdict(bootstrap.mean((found[:, 1] / found[:, 2]).tolist())),
        "pooled": asdict(bootstrap.ratio(found[:, 1].tolist(), found[:, 2].tolist())),
        "candidates": asdict(bootstrap.mean(found[:, 2].tolist())),
        "recall_more": asdict(bootstrap.difference(found[:, 0].tolist(), plain[:, 0].tolist())),
        "tuning": "in sample: the defaults" if name == PLAIN else "in sample" if name in METHODS else "cross-validated",
    }


def _row(entry: Mapping[str, Any]) -> list[str]:
    more = "" if entry["method"] == PLAIN else cell(entry["recall_more"], "+.3f")
    shares = [cell(entry[name]) for name in ("recall", "precision", "pooled")]
    return [
        str(entry["budget"]), entry["method"], *shares, f"{entry['candidates']['mean']:.2f}", more, entry["tuning"]
    ]  # fmt: skip
