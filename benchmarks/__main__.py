"""``python -m benchmarks --data DIR``: measure, write ``benchmarks/results``, print the tables."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.costs import coldstart, firstminute, gateway_costs, page_costs, planning_costs, scale, tool_prefix
from benchmarks.costs.latency import measure
from benchmarks.fleet import fleet_costs, fleet_tasks
from benchmarks.measurements import (
    arag,
    capabilities,
    discovery,
    inferred,
    model_arms,
    not_found,
    nothing_fits,
    recovery,
    to_do_lists,
)
from benchmarks.measurements.run import outcomes, summary
from benchmarks.methods.rivals import rivals_there
from benchmarks.methods.rivals.compare import beside_rivals, worth_comparing
from benchmarks.methods.search import World
from benchmarks.methods.vectors import vectors_of_this_run
from benchmarks.report import headline, result_files, tables
from benchmarks.sets.cases import Benchmark
from benchmarks.sets.loaders import load_benchmarks

QUICK = 60
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said; the parser's texts tell what each is."""

    data: Path
    only: Sequence[str]
    quick: bool
    scale: bool
    rivals: bool
    rivals_python: Path | None
    tables: bool
    fleet: Path | None
    model: str | None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when there was nothing to measure."""
    options = _parsed(arguments)
    if options.tables:
        tables.write_page(kept := result_files.read_all())
        tables.put_between(headline.PAGE, headline.BEGIN, headline.END, headline.headline(kept))
        return 0
    say = _sayer(time.perf_counter())
    benches, missing = load_benchmarks(options.data, options.only)
    for line in missing:
        say(line)
    if options.rivals:
        return _against_rivals(benches, options, say)
    _against_baselines(benches, options, say)
    special = [name for name in SPECIAL if not options.only or name in options.only]
    for name in special:
        say(name)
        if body := SPECIAL[name](options, say):
            _keep(name, body, options)
    say("done")
    return 0 if benches or special else 1


def _parsed(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    data = Path("../shared/benchmarks")
    parser.add_argument("--data", type=Path, default=data, help="folder that holds a folder a data set")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=f"a data set, {', '.join(SPECIAL)}")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} queries each; no results are written")
    parser.add_argument(
        "--scale",
        action="store_true",
        help="latency also with 100,000 tools; large catalogs in Postgres",
    )
    parser.add_argument("--rivals", action="store_true", help="measure beside other programs, and nothing else")
    parser.add_argument("--rivals-python", type=Path, metavar="PATH", help="the Python that has them; sets --rivals")
    parser.add_argument("--tables", action="store_true", help="only write the tables of the docs")
    parser.add_argument("--fleet", type=Path, metavar="MCP.JSON", help="installed servers, for what is called fleet")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="a chat model, for what is called model")
    found = vars(parser.parse_args(arguments))
    return Options(**{**found, "rivals": found["rivals"] or found["rivals_python"] is not None})


def _against_baselines(benches: Sequence[Benchmark], options: Options, say: Say) -> None:
    for bench, world in _worlds([bench for bench in benches if bench.levels], options):
        say(bench.name)
        levels = {level: summary(bench, level, dict(outcomes(bench, level, world))) for level in bench.levels}
        _keep(bench.name, {"about": bench.about, "levels": levels}, options)


def _against_rivals(benches: Sequence[Benchmark], options: Options, say: Say) -> int:
    python = rivals_there(options.rivals_python, say)
    if python is None:
        return 1
    for bench, world in _worlds(list(filter(worth_comparing, benches)), options):
        say(f"rivals on {bench.name}")
        _keep(f"rivals-{bench.name}", beside_rivals(bench, world, python, say), options)
    say("done")
    return 0


def _worlds(benches: Sequence[Benchmark], options: Options) -> list[tuple[Benchmark, World]]:
    """Each benchmark with the texts and vectors of its catalog; those of one catalog share them."""
    vectors = vectors_of_this_run()
    worlds: dict[int, World] = {}
    return [
        (
            bench.sample(QUICK) if options.quick else bench,
            worlds.setdefault(id(bench.catalog), World(bench.catalog, vectors)),
        )
        for bench in benches
    ]


def _refusals(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, nothing_fits.SETS)
    return nothing_fits.measure(_worlds(benches, options))


def _recovery(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, [recovery.SET])
    return recovery.measure(_worlds(benches, options))


def _to_do_lists(options: Options, say: Say) -> Mapping[str, object]:
    benches, missing = load_benchmarks(options.data, [to_do_lists.SET, to_do_lists.STEPS])
    if body := to_do_lists.measure(_worlds(benches, options)):
        return body
    say("; ".join(missing))
    return {}


def _capabilities(options: Options, say: Say) -> Mapping[str, object]:
    """Beside labels by hand; nothing where none of the labelled catalogs is there."""
    if body := capabilities.measure(options.data):
        return body
    say(f"capabilities: left out, there is neither {options.data}/livemcpbench nor ../fleet beside {options.data}")
    return {}


def _discovery(options: Options, say: Say) -> Mapping[str, object]:
    benches, missing = load_benchmarks(options.data, [discovery.SET])
    for bench, world in _worlds([bench for bench in benches if bench.name == discovery.SET], options):
        return discovery.measure(bench, world)
    say("; ".join(missing))
    return {}


def _inferred_edges(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, inferred.SETS)
    return inferred.measure_edges(_worlds(benches, options))


def _inferred_ranks(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, [inferred.RANKED])
    return inferred.measure_ranks(_worlds(benches, options))


def _latency(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, ["livemcpbench-steps"])
    known = (benches[0].catalog, [case.query for case in benches[0].queries]) if benches else None
    return measure(known, quick=options.quick, scale=options.scale, say=say)


def _scale(options: Options, say: Say) -> Mapping[str, object]:
    if options.scale:
        return scale.measure(say)
    say("scale: left out without --scale")
    return {}


def _reading(
    measured: Callable[[Path], Mapping[str, object]], folder: str, options: Options, say: Say
) -> Mapping[str, object]:
    """What is measured on documents; nothing where they are not there."""
    if (options.data / folder).is_dir():
        return measured(options.data)
    say(f"{folder}: left out, there is no {options.data / folder}")
    return {}


def _coldstart(options: Options, say: Say) -> Mapping[str, object]:
    return coldstart.measure(say, quick=options.quick)


def _first_minute(options: Options, say: Say) -> Mapping[str, object]:
    return firstminute.measure(say, quick=options.quick)


def _planning_costs(options: Options, say: Say) -> Mapping[str, object]:
    return planning_costs.measure()


def _gateway(options: Options, say: Say) -> Mapping[str, object]:
    return gateway_costs.measure(say, quick=options.quick)


def _page(options: Options, say: Say) -> Mapping[str, object]:
    return page_costs.measure(say, quick=options.quick)


def _tool_prefix(options: Options, say: Say) -> Mapping[str, object]:
    benches, missing = load_benchmarks(options.data, [tool_prefix.SET])
    for bench, world in _worlds([bench for bench in benches if bench.name == tool_prefix.SET], options):
        return tool_prefix.measure(bench, world)
    say("; ".join(missing))
    return {}


def _model_arms(options: Options, say: Say) -> Mapping[str, object]:
    """With a chat model; nothing where none is named or the set is not there."""
    if options.model is not None and (options.data / model_arms.SET).is_dir():
        return model_arms.measure(options.data, options.model, options.fleet)
    missing = f"there is no {options.data / model_arms.SET}" if options.model else "--model names no chat model"
    say(f"model-arms: left out, {missing}")
    return {}


def _model_demo(options: Options, say: Say) -> Mapping[str, object]:
    """With a chat model; nothing where none is named."""
    if options.model is not None:
        return model_arms.measure_demo(options.model)
    say("model-demo: left out, --model names no chat model")
    return {}


def _fleet(options: Options, say: Say) -> Mapping[str, object]:
    if options.fleet is None and "fleet" not in options.only:
        say("fleet: left out, --fleet names no mcp.json of installed servers")
        return {}
    return fleet_costs.measure(options.fleet, say, quick=options.quick)


def _fleet_tasks(options: Options, say: Say) -> Mapping[str, object]:
    """Over installed servers; nothing where they or the tasks are not there."""
    tasks = options.data.parent / "fleet" / "tasks.json"
    if options.fleet is not None and tasks.is_file():
        return fleet_tasks.measure(options.fleet, tasks, say)
    missing = f"there is no {tasks}" if options.fleet else "--fleet names no mcp.json of installed servers"
    say(f"fleet-tasks: left out, {missing}")
    return {}


SPECIAL: Mapping[str, Callable[[Options, Say], Mapping[str, object]]] = {
    "nothing-fits": _refusals,
    "recovery": _recovery,
    "to-do-lists": _to_do_lists,
    "capabilities": _capabilities,
    "discovery": _discovery,
    "inferred-edges": _inferred_edges,
    "inferred-retrieval": _inferred_ranks,
    "arag-hotpotqa": partial(_reading, arag.on_hotpotqa, "hotpotqa"),
    "arag-medical": partial(_reading, arag.on_medical, "graphrag-bench"),
    "not-found": partial(_reading, not_found.on_hotpotqa, "hotpotqa"),
    "planning-costs": _planning_costs,
    "latency": _latency,
    "scale": _scale,
    "coldstart": _coldstart,
    "first-minute": _first_minute,
    "gateway": _gateway,
    "page": _page,
    "tool-prefix": _tool_prefix,
    "model-arms": _model_arms,
    "model-demo": _model_demo,
    "fleet": _fleet,
    "fleet-tasks": _fleet_tasks,
}
"""What is measured beside the rankings, by the name of its results file."""


def _keep(name: str, body: Mapping[str, object], options: Options) -> None:
    document = {**body, **result_files.circumstances()}
    if not options.quick:
        result_files.write(name, document)
    print("\n".join(tables.section(name, document)), flush=True)


def _sayer(started: float) -> Say:
    def say(line: str) -> None:
        print(f"[{time.perf_counter() - started:4.0f} s] {line}", file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    raise SystemExit(main())
