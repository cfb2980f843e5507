"""Discovery under a tool budget: how many of the right tools are found, and how many of those shown are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.methods.search import World
from benchmarks.report.statistics import Bootstrap, folds
from benchmarks.sets.cases import Benchmark, Case
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.capabilities.discovery import AGENTS, CUT, WEIGHT
from callsheet.retrievers.evaluation.ranking_metrics import recall

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
COLUMNS = ("B", "method", "recall", "precision", "precision, pooled", "candidates", "recall - plain", "tuning")
_ABOUT = (
    "{}, {} steps with a gold tool. At most B tools are shown. Precision: the share of right tools among those shown, "
    "the mean over steps; pooled: over all tools shown together. Cross-validated: {} chosen on four fifths of tasks "
    "for the highest pooled precision at B=5 among the choices that lose no recall there at any B"
)
Found = NDArray[np.float64]
"""``(n, 3)``: recall, how many of those shown are right, how many are shown; a row a step."""


def measure(bench: Benchmark, world: World) -> Mapping[str, object]:
    """The body of the results file: a row a budget and method."""
    cases = bench.cases("tool")
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    found = {name: shown(retriever, cases, settings) for name, settings in METHODS.items()}
    folded, choices = _cross_validated(retriever, cases, found[PLAIN])
    found["discovery, settings"] = folded
    bootstrap = Bootstrap([case.group for case in cases])
    measured = [
        _figures(bootstrap, name, budget, found[name][budget], found[PLAIN][budget])
        for budget in BUDGETS
        for name in found
    ]
    return {
        "about": _ABOUT.format(bench.about, len(cases), ", ".join(GRID)),
        "columns": list(COLUMNS),
        "rows": [_row(entry) for entry in measured],
        "measured": measured,
        "choices": choices,
    }


def shown(retriever: AgentGraphRetriever, cases: Sequence[Case], settings: Mapping[str, float]) -> Mapping[int, Found]:
    """What a selection under each budget shows for each case."""
    return {
        budget: np.array([_shown(retriever, case, budget, settings) for case in cases], float) for budget in BUDGETS
    }


def _shown(
    retriever: AgentGraphRetriever, case: Case, budget: int, settings: Mapping[str, float]
) -> tuple[float, int, int]:
    selection = retriever.select(case.query, agents=max(AGENTS, budget), tools=budget, **settings)
    tools = [tool.id for tool in selection.tools]
    right = sum(any(tool in element for element in case.tools) for tool in tools)
    return recall(tools, case.tools, budget), right, len(tools)


def _cross_validated(
    retriever: AgentGraphRetriever, cases: Sequence[Case], plain: Mapping[int, Found]
) -> tuple[Mapping[int, Found], list[dict[str, float]]]:
    tried = {
        values: shown(retriever, cases, dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())
    }
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
        "tuning": _tuning(name),
    }


def _tuning(name: str) -> str:
    if name == PLAIN:
        return "in sample: the defaults"
    return "cross-validated" if name not in METHODS else "in sample"


def _row(entry: Mapping[str, Any]) -> list[str]:
    def said(key: str, form: str = ".3f") -> str:
        value = entry[key]
        return f"{value['mean']:{form}} [{value['low']:{form}}, {value['high']:{form}}]".replace("0.", ".")

    more = "" if entry["method"] == PLAIN else said("recall_more", "+.3f")
    shown_of = (said("recall"), said("precision"), said("pooled"), f"{entry['candidates']['mean']:.2f}")
    return [str(entry["budget"]), entry["method"], *shown_of, more, entry["tuning"]]
