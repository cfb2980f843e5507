"""Dependencies inferred by the learned model: its training, its figures on sets left out, and what is retrieved."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bootstrap import Bootstrap, Interval, cell
from benchmarks.rankings import evaluate, ours_at
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, with_dependencies
from callsheet.graphs import Catalog
from callsheet.graphs.dependencies import attach
from callsheet.retrievers.inference import infer_dependencies
from callsheet.retrievers.inference.edge_model import NEED, PAIR, PLACE, WEIGHTS, places

RANKED = "toollinkos-shuffled"
EDGE_COLUMNS = ("edges of", "written", "proposed", "precision", "recall", "F1", "F1 in sample")
RANK_COLUMNS = ("dependencies", "mAP@10", "R@10")
PAIRS = Path(__file__).parents[1] / "sets" / "edge_pairs.npz"
_ABOUT_EDGES = (
    "Dependencies that people wrote, judged, or that solutions and paths show, against those that the learned model "
    "proposes: each set left out of the training, and, last, in sample. Those that share no word cannot be reached"
)
_ABOUT_RANKS = (
    "ToolLinkOS, each tool's dependencies in shuffled order; ours with its defaults, but for proposed=0 where nothing "
    "is inferred. The model is trained on its edges too"
)
_NEGATIVES, _WHOLE, _TOP = 12.0, 25, 3
Floats = NDArray[np.float64]
Counts = tuple[int, int, int]
"""For one tool: edges that are proposed and written, proposed at all, written at all."""


def measure_edges() -> Mapping[str, object]:
    """A row a set of edges: precision, recall and F1 on pairs of tools, intervals drawn by the tool with the need."""
    data, rows = np.load(PAIRS), list[list[str]]()
    whole = train(data, data["set"] >= 0)
    for number, name in enumerate(data["sets"].tolist()):
        ours, known = (counts(data, number, model) for model in (train(data, data["set"] != number), whole))
        _, proposed, written = np.sum(ours, axis=0)
        rows.append([name, str(written), str(proposed), *map(cell, (*figures(ours), figures(known)[2]))])
    return {"about": _ABOUT_EDGES, "columns": list(EDGE_COLUMNS), "rows": rows}


def counts(data: Any, number: int, model: tuple[Floats, Floats]) -> list[Counts]:
    """What a trained model proposes for a set, by tool; edges out of reach come last."""
    mine = data["set"] == number
    need, pair, source, status = (data[name][mine] for name in ("need", "pair", "source", "status"))
    placed = _placed(_inputs(data)[mine] @ model[0], need) @ model[1]
    best = np.lexsort((-placed, need))
    top = best[(np.arange(len(best)) - np.searchsorted(need[best], need[best]) < _TOP) & (placed[best] >= 0)]
    top = top[np.unique(pair[top], return_index=True)[1]]
    reached = np.flatnonzero(status == 1)[np.unique(pair[status == 1], return_index=True)[1]]
    parts = (top[status[top] == 1], top[status[top] >= 0], reached)
    tools, several = np.unique(source), [Counter(source[part].tolist()) for part in parts]
    hidden = int(data["written"][number]) - len(reached)
    return [(several[0][one], several[1][one], several[2][one]) for one in tools.tolist()] + [(0, 0, 1)] * hidden


def train(data: Any, rows: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Both logistic regressions; each set has the same weight, less if it has few edges. A bias is last."""
    weight, right = np.zeros(len(rows)), data["label"] == 1
    for number in np.unique(data["set"][rows]):
        yes, no = (rows & (data["set"] == number) & (data["label"] == label) for label in (1, 0))
        ratio = min(no.sum() / yes.sum(), _NEGATIVES)
        share = 100 * min(1.0, yes.sum() / _WHOLE) / (1 + ratio)
        weight[yes], weight[no] = share / yes.sum(), share * ratio / no.sum()
    inputs, dense = _inputs(data), len(NEED) + len(PAIR)
    mean = np.average(inputs, axis=0, weights=weight)
    spread = np.sqrt(np.average((inputs - mean) ** 2, axis=0, weights=weight)) + 1e-3
    spread[dense:], mean[dense:] = 1, 0
    penalty = [3.0] * dense + [2.0] * (len(mean) - dense - 1)
    found = _logistic((inputs - mean) / spread, right, weight, penalty) / spread
    found[-1] -= mean @ found
    return found, _logistic(_placed(inputs @ found, data["need"]), right, weight, [0.5] * len(PLACE))


def _inputs(data: Any) -> Floats:
    """``(n, features + words + 1)``, the last 1."""
    words = np.unpackbits(data["words"], axis=1)[:, : len(data["vocabulary"])]
    return np.hstack([data["features"] / data["scale"], words, np.ones((len(words), 1))])


def _placed(scores: Floats, need: NDArray[np.int32]) -> Floats:
    parts = np.split(scores, np.flatnonzero(np.diff(need)) + 1)
    return np.hstack([np.vstack([places(part) for part in parts]), np.ones((len(scores), 1))])


def _logistic(inputs: Floats, right: NDArray[np.bool_], weight: Floats, penalty: Sequence[float]) -> Floats:
    found, ridge = np.zeros(inputs.shape[1]), np.diag([*penalty, 1e-6])
    for _ in range(20):  # Newton's method
        sure = 1 / (1 + np.exp(-np.clip(inputs @ found, -30, 30)))
        slope = inputs.T @ (weight * (right - sure)) - ridge @ found
        found += (step := np.linalg.solve((inputs.T * (weight * sure * (1 - sure))) @ inputs + ridge, slope))
        if np.abs(step).max() < 1e-6:
            break
    return found


def measure_ranks(bench: Benchmark, world: World) -> Mapping[str, object]:
    """A row a graph: what our default retriever finds with it."""
    rows = [_rank_row(bench, world, name, *graph) for name, graph in graphs(bench.catalog).items()]
    return {"about": _ABOUT_RANKS, "columns": list(RANK_COLUMNS), "rows": rows}


def graphs(catalog: Catalog) -> Mapping[str, tuple[Catalog, Mapping[str, float]]]:
    """The graphs that are compared, by what is in them: the tools with it, and settings that it needs."""
    none, off, default = with_dependencies(catalog, lambda tool: ()), {"proposed": 0.0}, dict[str, float]()
    accepted = [edge.model_copy(update={"accept": True}) for edge in infer_dependencies(none)]
    return {
        "none, nothing inferred": (none, off),
        "none, inferred by default": (none, default),
        "inferred, all accepted": (Catalog(agents=attach(none.agents, [("benchmark", accepted)])[0]), default),
        "as written, nothing inferred": (catalog, off),
        "as written, inferred by default": (catalog, default),
    }


def figures(found: Sequence[Counts]) -> tuple[Interval, Interval, Interval]:
    """Precision, recall and F1 over all tools, each with its interval by tool."""
    ratio = Bootstrap([str(row) for row in range(len(found))]).ratio
    right, proposed, written = np.array(found, float).T
    return ratio(right, proposed), ratio(right, written), ratio(2 * right, proposed + written)


def _rank_row(bench: Benchmark, world: World, name: str, catalog: Catalog, settings: Mapping[str, float]) -> list[str]:
    rank = ours_at(World(catalog, world.vectors), "tool", 10, **settings)
    cases = bench.cases("tool")
    found = evaluate(map(rank, (case.query for case in cases)), cases, "tool", (10,))
    bootstrap = Bootstrap([case.group for case in cases])
    return [name, *(cell(bootstrap.mean(found[metric])) for metric in ("map@10", "recall@10"))]


if __name__ == "__main__":
    pairs, dense = np.load(PAIRS), len(NEED) + len(PAIR)
    (*found, bias), (*place, end) = (part.round(3).tolist() for part in train(pairs, pairs["set"] >= 0))
    learned = {
        "weights": dict(zip((*NEED, *PAIR), found, strict=False)),
        "words": dict(zip(pairs["vocabulary"].tolist(), found[dense:], strict=True)),
        "bias": bias,
        "place": dict(zip(PLACE, place, strict=True)),
        "place_bias": end,
    }
    WEIGHTS.write_text(json.dumps(json.loads(WEIGHTS.read_bytes()) | learned, separators=(",", ":")) + "\n")
