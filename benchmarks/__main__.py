"""``python -m benchmarks --data DIR``: measure, write ``benchmarks/results``, print the tables."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import fleet, latency, models, report
from benchmarks.measurements import (
    ablations,
    arag,
    arag_model,
    attack,
    dependencies,
    extractive,
    general_tools,
    nothing_fits,
    papers,
    toolkg,
    whole_requests,
)
from benchmarks.rankings import outcomes, summary
from benchmarks.rivals import beside_rivals, worth_comparing
from benchmarks.search import World, embedder_of_this_run, vectors_of_this_run
from benchmarks.sets.cases import Benchmark
from benchmarks.sets.loaders import load_benchmarks

Body = Mapping[str, object]
Say = Callable[[str], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when there was nothing to measure."""
    options = _parsed(arguments)
    if options.tables:
        results = report.read_all()
        report.put_between(report.PAGE, report.TABLES, report.page(results))
        report.put_between(report.README, report.FIGURES, report.headline(results))
        return 0
    started = time.perf_counter()

    def say(line: str) -> None:
        print(f"[{time.perf_counter() - started:4.0f} s] {line}", file=sys.stderr, flush=True)

    benches, missing = load_benchmarks(options.data, options.only)
    for line in missing:
        say(line)
    if options.rivals_python:
        for bench, world in _worlds(filter(worth_comparing, benches), options):
            say(f"rivals on {bench.name}")
            _keep(f"rivals-{bench.name}", beside_rivals(bench, world, options.rivals_python, say))
        return 0
    for bench, world in _worlds((bench for bench in benches if bench.levels), options):
        say(bench.name)
        levels = {level: summary(bench, level, dict(outcomes(bench, level, world))) for level in bench.levels}
        _keep(report.named(bench.name, options.embeddings), {"about": bench.about, "levels": levels})
    special = [name for name in SPECIAL if not options.only or name in options.only]
    for name in special:
        say(name)
        try:
            _keep(name, SPECIAL[name](options, say))
        except LeftOut as error:
            say(f"{name}: left out, {error}")
    say("done")
    return 0 if benches or special else 1


def _parsed(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", type=Path, default="../shared/benchmarks", help="folder with one folder a data set")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=f"a data set, {', '.join(SPECIAL)}")
    parser.add_argument("--scale", action="store_true", help="latency with 100,000 tools, and index-size")
    parser.add_argument("--rivals-python", type=Path, metavar="PATH", help="measure beside other programs, and no more")
    parser.add_argument("--tables", action="store_true", help="only write the tables of the docs")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="a chat model, for what is called model; it reranks")
    parser.add_argument("--embeddings", "--embedder", metavar="PROVIDER:NAME", help="embedder of all; its own results")
    return parser.parse_args(arguments)


def _worlds(benches: Iterable[Benchmark], options: Any) -> list[tuple[Benchmark, World]]:
    """Each benchmark with the texts and vectors of its catalog; those of one catalog share them."""
    given = options.embeddings and embedder_of_this_run(options.embeddings)
    both = given or vectors_of_this_run(), given or vectors_of_this_run(tuned=False)
    known: dict[int, World] = {}
    return [(one, known.setdefault(id(one.catalog), World(one.catalog, *both, options.model))) for one in benches]


def _keep(name: str, body: Body) -> None:
    document = {**body, **report.circumstances()}
    report.write(name, document)
    print(report.compact(name, document), flush=True)


class LeftOut(Exception):  # noqa: N818 - nothing is wrong
    """Why something is not measured."""


def _given(value: Any, why: str) -> Any:
    if not value:
        raise LeftOut(why)
    return value


def _on_sets(options: Any, names: Sequence[str]) -> list[tuple[Benchmark, World]]:
    benches, missing = load_benchmarks(options.data, names)
    return _worlds(_given(benches, "; ".join(missing)), options)


def _data(options: Any, name: str) -> Path:
    """The folder of all data, if it holds this set."""
    _given((options.data / name).is_dir(), f"there is no {options.data / name}")
    return Path(options.data)


_MODEL = "--model names no chat model"
_SCALE = "Chroma's index of 100,000 nodes takes minutes: add --scale"
SPECIAL: Mapping[str, Callable[[Any, Say], Body]] = {
    "ablations": lambda options, say: ablations.measure(_on_sets(options, ablations.SETS)),
    "nothing-fits": lambda options, say: nothing_fits.measure(_on_sets(options, nothing_fits.SETS)),
    "whole-requests": lambda options, say: whole_requests.measure(_on_sets(options, list(whole_requests.PLANS))),
    "capabilities": lambda options, say: toolkg.measure_capabilities(_data(options, "livemcpbench")),
    "general-tools": lambda options, say: general_tools.measure(_data(options, "mcp-atlas")),
    "discovery": lambda options, say: toolkg.measure_discovery(_on_sets(options, toolkg.SETS), options.data),
    "inferred-edges": lambda options, say: dependencies.measure_edges(),
    "inferred-retrieval": lambda options, say: dependencies.measure_ranks(*_on_sets(options, [dependencies.RANKED])[0]),
    "agent-as-a-graph": lambda options, say: papers.agent_as_a_graph(*_on_sets(options, [papers.STEPS])[0]),
    "graph-rag-tool-fusion": lambda options, say: papers.tool_fusion(_on_sets(options, papers.LINKED)),
    "attack": lambda options, say: attack.measure(*_on_sets(options, [attack.SET])[0]),
    "arag-hotpotqa": lambda options, say: arag.measure(_data(options, "hotpotqa"), "hotpotqa"),
    "arag-musique": lambda options, say: arag.measure(_data(options, "musique"), "musique"),
    "arag-medical": lambda options, say: arag.measure(_data(options, "graphrag-bench"), "graphrag-bench"),
    "arag-extractive": lambda options, say: extractive.measure(_data(options, "hotpotqa")),
    "arag-model": lambda options, say: arag_model.measure(_data(options, "hotpotqa"), _given(options.model, _MODEL)),
    "latency": lambda options, say: latency.measure(options.data, say, scale=options.scale),
    "index-size": lambda options, say: latency.measure_index_size(_given(options.scale, _SCALE) and options.data, say),
    "model-arms": lambda options, say: models.measure(_data(options, models.SET), _given(options.model, _MODEL)),
    "fleet-tasks": lambda options, say: fleet.measure(_data(options, fleet.FOLDER)),
}
"""What is measured beside the rankings, by the name of its results file."""


if __name__ == "__main__":
    raise SystemExit(main())
