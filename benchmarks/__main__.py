"""``python -m benchmarks --data DIR``: measure, write ``benchmarks/results``, print the tables."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import fleet, index_size, latency, models, report
from benchmarks.measurements import arag, attack, dependencies, nothing_fits, toolkg
from benchmarks.rankings import outcomes, summary
from benchmarks.rivals import beside_rivals, rivals_there, worth_comparing
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark
from benchmarks.sets.loaders import load_benchmarks

QUICK = 60
Body = Mapping[str, object]
Say = Callable[[str], None]
Special = Callable[[Any, Say], Body]


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
    if options.rivals or options.rivals_python:
        return _against_rivals(benches, options, say)
    for bench, world in _worlds([bench for bench in benches if bench.levels], options):
        say(bench.name)
        levels = {level: summary(bench, level, dict(outcomes(bench, level, world))) for level in bench.levels}
        _keep(bench.name, {"about": bench.about, "levels": levels}, options)
    special = [name for name in SPECIAL if not options.only or name in options.only]
    for name in special:
        say(name)
        try:
            _keep(name, SPECIAL[name](options, say), options)
        except LeftOut as error:
            say(f"{name}: left out, {error}")
    say("done")
    return 0 if benches or special else 1


def _parsed(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    data = Path("../shared/benchmarks")
    parser.add_argument("--data", type=Path, default=data, help="folder that holds a folder a data set")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=f"a data set, {', '.join(SPECIAL)}")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} queries each; no results are written")
    parser.add_argument("--scale", action="store_true", help="latency with 100,000 tools, and index-size")
    parser.add_argument("--rivals", action="store_true", help="measure beside other programs, and nothing else")
    parser.add_argument("--rivals-python", type=Path, metavar="PATH", help="the Python that has them; sets --rivals")
    parser.add_argument("--tables", action="store_true", help="only write the tables of the docs")
    parser.add_argument("--fleet", type=Path, metavar="MCP.JSON", help="installed servers, for what is called fleet")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="a chat model, for what is called model")
    return parser.parse_args(arguments)


def _worlds(benches: Sequence[Benchmark], options: Any) -> list[tuple[Benchmark, World]]:
    """Each benchmark with the texts and vectors of its catalog; those of one catalog share them."""
    vectors, published = vectors_of_this_run(), vectors_of_this_run(tuned=False)
    known: dict[int, World] = {}
    return [
        (
            bench.sample(QUICK) if options.quick else bench,
            known.setdefault(id(bench.catalog), World(bench.catalog, vectors, published)),
        )
        for bench in benches
    ]


def _against_rivals(benches: Sequence[Benchmark], options: Any, say: Say) -> int:
    python = rivals_there(options.rivals_python, say)
    if python is None:
        return 1
    for bench, world in _worlds(list(filter(worth_comparing, benches)), options):
        say(f"rivals on {bench.name}")
        _keep(f"rivals-{bench.name}", beside_rivals(bench, world, python, say), options)
    say("done")
    return 0


def _keep(name: str, body: Body, options: Any) -> None:
    document = {**body, **report.circumstances()}
    if not options.quick:
        report.write(name, document)
    print("\n".join(report.section(name, document)), flush=True)


class LeftOut(Exception):  # noqa: N818 - nothing is wrong
    """Why something is not measured."""


def _need(there: object, why: str) -> None:
    if not there:
        raise LeftOut(why)


def _on_sets(names: Sequence[str], measured: Callable[[list[tuple[Benchmark, World]]], Body]) -> Special:
    def special(options: Any, say: Say) -> Body:
        benches, missing = load_benchmarks(options.data, names)
        _need(benches, "; ".join(missing))
        return measured(_worlds(benches, options))

    return special


def _on_folder(name: str, measured: Callable[[Path], Body]) -> Special:
    def special(options: Any, say: Say) -> Body:
        _need((options.data / name).is_dir(), f"there is no {options.data / name}")
        return measured(options.data)

    return special


def _with_model(measured: Callable[[Any, str], Body]) -> Special:
    def special(options: Any, say: Say) -> Body:
        _need(options.model, "--model names no chat model")
        return measured(options, options.model)

    return special


def _capabilities(options: Any, say: Say) -> Body:
    body = toolkg.measure_capabilities(options.data)
    _need(body, f"there is neither {options.data}/livemcpbench nor ../fleet beside {options.data}")
    return body


def _latency(options: Any, say: Say) -> Body:
    benches, _ = load_benchmarks(options.data, ["livemcpbench-steps"])
    known = (benches[0].catalog, [case.query for case in benches[0].queries]) if benches else None
    return latency.measure(known, quick=options.quick, scale=options.scale, say=say)


def _index_size(options: Any, say: Say) -> Body:
    _need(options.scale, "it embeds 100,000 texts, with --scale")
    return index_size.measure(options.data, say)


def _model_arms(options: Any, model: str) -> Body:
    _need((options.data / models.SET).is_dir(), f"there is no {options.data / models.SET}")
    return models.measure(options.data, model)


def _servers(options: Any) -> tuple[Path, Path]:
    """The configuration of the installed servers, and the tasks over them."""
    tasks = options.data.parent / "fleet" / "tasks.json"
    _need(options.fleet, "--fleet names no mcp.json of installed servers")
    _need(tasks.is_file(), f"there is no {tasks}")
    return options.fleet, tasks


SPECIAL: Mapping[str, Special] = {
    "nothing-fits": _on_sets(nothing_fits.SETS, nothing_fits.measure),
    "capabilities": _capabilities,
    "discovery": _on_sets([toolkg.SET], lambda worlds: toolkg.measure_discovery(*worlds[0])),
    "inferred-edges": _on_sets(dependencies.SETS, dependencies.measure_edges),
    "inferred-retrieval": _on_sets([dependencies.RANKED], dependencies.measure_ranks),
    "attack": _on_sets([attack.SET], attack.measure),
    "arag-hotpotqa": _on_folder("hotpotqa", arag.on_hotpotqa),
    "arag-medical": _on_folder("graphrag-bench", arag.on_medical),
    "latency": _latency,
    "index-size": _index_size,
    "model-arms": _with_model(_model_arms),
    "model-demo": _with_model(lambda options, model: models.measure_demo(model)),
    "fleet-tasks": lambda options, say: fleet.measure(*_servers(options), say),
    "model-fleet": _with_model(lambda options, model: models.measure_fleet(*_servers(options), model)),
}
"""What is measured beside the rankings, by the name of its results file."""


if __name__ == "__main__":
    raise SystemExit(main())
