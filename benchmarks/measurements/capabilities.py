"""How well capabilities are assigned, beside labels by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.methods.vectors import vectors_of_this_run
from benchmarks.report.statistics import Bootstrap, Interval
from callsheet.graphs import Catalog, Taxonomy, default_taxonomy, load
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.capabilities import Assignments

LABELS = Path(__file__).parents[1] / "sets" / "capability_labels.json"
LEVELS: Mapping[str, int | None] = {"narrowest": None, "ten": 1, "four clusters": 0}
HALVES = ("held out", "development")
COLUMNS = ("level", "half", "tools", "micro-F1", "precision", "recall")
_ABOUT = (
    "Capabilities assigned by the texts of tools, without a language model, beside {} tools labelled by hand before "
    "that was written; micro-averaged, intervals by agent. What was tuned was tuned on the development half; the "
    "held-out half holds other agents. Coverage, the share of all {} tools with a capability: {}. Of agents whose "
    "labels are given, these are not here: {}"
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """One tool with what it was labelled and what was assigned to it.

    Attributes:
        agent: Set and agent; intervals are drawn by it.
        half: ``development`` or ``held out``.
        gold: Ids by hand.
        found: Ids as assigned.
    """

    agent: str
    half: str
    gold: frozenset[str]
    found: frozenset[str]


def measure(data: Path) -> Mapping[str, object]:
    """The body of the results file; empty where none of the labelled catalogs is there.

    Args:
        data: The folder of the data sets; the recorded servers are expected beside it, as ``../fleet/manifests``.
    """
    vectors = vectors_of_this_run()
    assigned = {
        name: AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=vectors).capabilities()
        for name, catalog in _catalogs(data).items()
    }
    if not assigned:
        return {}
    tools, missing = labelled(json.loads(LABELS.read_text(encoding="utf-8")), assigned)
    levels = [
        _figures(level, half, [tool for tool in tools if half in (tool.half, "all")])
        for level in LEVELS
        for half in (*HALVES, "all")
    ]
    whole = sum(len(found.of) for found in assigned.values())
    covered = ", ".join(f"{name} {found.coverage:.1%}" for name, found in assigned.items())
    return {
        "about": _ABOUT.format(len(tools), whole, covered, ", ".join(missing) or "none"),
        "columns": list(COLUMNS),
        "rows": [_row(found) for found in levels],
        "levels_measured": levels,
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
    pairs = [(_lifted(tool.gold, taxonomy, depth), _lifted(tool.found, taxonomy, depth)) for tool in tools]
    both = [len(gold & found) for gold, found in pairs]
    bootstrap = Bootstrap([tool.agent for tool in tools])
    return {
        "f1": bootstrap.ratio([2 * n for n in both], [len(gold) + len(found) for gold, found in pairs]),
        "precision": bootstrap.ratio(both, [len(found) for _, found in pairs]),
        "recall": bootstrap.ratio(both, [len(gold) for gold, _ in pairs]),
    }


def _lifted(names: frozenset[str], taxonomy: Taxonomy, depth: int | None) -> frozenset[str]:
    return names if depth is None else frozenset(taxonomy.at(depth, name) for name in names)


def _figures(level: str, half: str, tools: Sequence[Labelled]) -> dict[str, Any]:
    found = figures(tools, default_taxonomy(), LEVELS[level])
    return {"level": level, "half": half, "n": len(tools), **{name: asdict(value) for name, value in found.items()}}


def _row(found: Mapping[str, Any]) -> list[str]:
    shown = [
        "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**found[name]).replace("0.", ".")
        for name in ("f1", "precision", "recall")
    ]
    return [found["level"], found["half"], str(found["n"]), *shown]


def _catalogs(data: Path) -> dict[str, Catalog]:
    places = {"fleet": data.parent / "fleet" / "manifests", "livemcpbench": data / "livemcpbench" / "tools.json"}
    return {name: load(place).catalog for name, place in places.items() if place.exists()}
