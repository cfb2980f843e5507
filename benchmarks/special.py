"""What is measured beside the rankings: costs, graphs, documents, models, each with its results file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.costs import (
    coldstart,
    document_costs,
    firstminute,
    gateway_costs,
    latency,
    page_costs,
    planning_costs,
    scale,
    tool_prefix,
)
from benchmarks.fleet import fleet_costs, fleet_tasks
from benchmarks.measurements import (
    arag,
    capabilities,
    discovery,
    inferred,
    model_arms,
    nothing_fits,
    recovery,
    to_do_lists,
)
from benchmarks.methods.search import World
from benchmarks.methods.vectors import vectors_of_this_run
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


def worlds(benches: Sequence[Benchmark], options: Options) -> list[tuple[Benchmark, World]]:
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


def _refusals(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, nothing_fits.SETS)
    return nothing_fits.measure(worlds(benches, options))


def _recovery(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, [recovery.SET])
    return recovery.measure(worlds(benches, options))


def _to_do_lists(options: Options, say: Say) -> Mapping[str, object]:
    benches, missing = load_benchmarks(options.data, [to_do_lists.SET, to_do_lists.STEPS])
    if body := to_do_lists.measure(worlds(benches, options)):
        return body
    say("; ".join(missing))
    return {}


def _capabilities(options: Options, say: Say) -> Mapping[str, object]:
    """Beside labels by hand; nothing where none of the labelled catalogs is there."""
    if body := capabilities.measure(options.data):
        return body
    say(f"capabilities: left out, there is neither {options.data}/livemcpbench nor ../fleet beside {options.data}")
    return {}


def _on_one_set(
    name: str, measured: Callable[[Benchmark, World], Mapping[str, object]], options: Options, say: Say
) -> Mapping[str, object]:
    """What is measured on one set; nothing where it is not there."""
    benches, missing = load_benchmarks(options.data, [name])
    for bench, world in worlds([bench for bench in benches if bench.name == name], options):
        return measured(bench, world)
    say("; ".join(missing))
    return {}


def _inferred_edges(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, inferred.SETS)
    return inferred.measure_edges(worlds(benches, options))


def _inferred_ranks(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, [inferred.RANKED])
    return inferred.measure_ranks(worlds(benches, options))


def _latency(options: Options, say: Say) -> Mapping[str, object]:
    benches, _ = load_benchmarks(options.data, ["livemcpbench-steps"])
    known = (benches[0].catalog, [case.query for case in benches[0].queries]) if benches else None
    return latency.measure(known, quick=options.quick, scale=options.scale, say=say)


def _scale(sizes: Sequence[int], options: Options, say: Say) -> Mapping[str, object]:
    if options.scale:
        return scale.measure(say, sizes)
    say(f"scale, {max(sizes):,} tools: left out without --scale")
    return {}


def _reading(
    measured: Callable[[Path], Mapping[str, object]], folder: str, options: Options, say: Say
) -> Mapping[str, object]:
    """What is measured on documents; nothing where they are not there."""
    if (options.data / folder).is_dir():
        return measured(options.data)
    say(f"{folder}: left out, there is no {options.data / folder}")
    return {}


def _documents(options: Options, say: Say) -> Mapping[str, object]:
    return document_costs.measure(say, quick=options.quick, scale=options.scale)


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


def _model_arms(options: Options, say: Say) -> Mapping[str, object]:
    """With a chat model; nothing where none is named or the set is not there."""
    if options.model is not None and (options.data / model_arms.SET).is_dir():
        return model_arms.measure(options.data, options.model)
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


def _fleet_tasks(name: str, options: Options, say: Say) -> Mapping[str, object]:
    """Over installed servers, by the gold path or with a chat model; nothing where what it needs is not there."""
    tasks = options.data.parent / "fleet" / "tasks.json"
    if options.fleet is None or not tasks.is_file():
        missing = f"there is no {tasks}" if options.fleet else "--fleet names no mcp.json of installed servers"
    elif name == "fleet-tasks":
        return fleet_tasks.measure(options.fleet, tasks, say)
    elif options.model is not None:
        return model_arms.measure_fleet(options.fleet, tasks, options.model)
    else:
        missing = "--model names no chat model"
    say(f"{name}: left out, {missing}")
    return {}


SPECIAL: Mapping[str, Callable[[Options, Say], Mapping[str, object]]] = {
    "nothing-fits": _refusals,
    "recovery": _recovery,
    "to-do-lists": _to_do_lists,
    "capabilities": _capabilities,
    "discovery": partial(_on_one_set, discovery.SET, discovery.measure),
    "inferred-edges": _inferred_edges,
    "inferred-retrieval": _inferred_ranks,
    "arag-hotpotqa": partial(_reading, arag.on_hotpotqa, "hotpotqa"),
    "arag-medical": partial(_reading, arag.on_medical, "graphrag-bench"),
    "planning-costs": _planning_costs,
    "latency": _latency,
    "scale": partial(_scale, scale.SIZES),
    "scale-million": partial(_scale, scale.MILLION),
    "document-costs": _documents,
    "coldstart": _coldstart,
    "first-minute": _first_minute,
    "gateway": _gateway,
    "page": _page,
    "tool-prefix": partial(_on_one_set, tool_prefix.SET, tool_prefix.measure),
    "model-arms": _model_arms,
    "model-demo": _model_demo,
    "fleet": _fleet,
    "fleet-tasks": partial(_fleet_tasks, "fleet-tasks"),
    "model-fleet": partial(_fleet_tasks, "model-fleet"),
}
"""What is measured beside the rankings, by the name of its results file."""
