"""``python -m benchmarks --data DIR``: measure, write ``benchmarks/results``, print the tables."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measurements.run import outcomes, summary
from benchmarks.methods.rivals import rivals_there
from benchmarks.methods.rivals.compare import beside_rivals, worth_comparing
from benchmarks.report import headline, result_files, tables
from benchmarks.sets.cases import Benchmark
from benchmarks.sets.loaders import load_benchmarks
from benchmarks.special import QUICK, SPECIAL, Options, Say, worlds


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
    for bench, world in worlds([bench for bench in benches if bench.levels], options):
        say(bench.name)
        levels = {level: summary(bench, level, dict(outcomes(bench, level, world))) for level in bench.levels}
        _keep(bench.name, {"about": bench.about, "levels": levels}, options)


def _against_rivals(benches: Sequence[Benchmark], options: Options, say: Say) -> int:
    python = rivals_there(options.rivals_python, say)
    if python is None:
        return 1
    for bench, world in worlds(list(filter(worth_comparing, benches)), options):
        say(f"rivals on {bench.name}")
        _keep(f"rivals-{bench.name}", beside_rivals(bench, world, python, say), options)
    say("done")
    return 0


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
