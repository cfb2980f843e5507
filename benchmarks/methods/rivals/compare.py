"""Ours, the plain baselines and the rivals on the same queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.measurements.run import OURS, Outcome, evaluate, outcomes, summary
from benchmarks.methods.rivals import RIVALS, run_rival
from benchmarks.methods.search import World
from benchmarks.sets.cases import Benchmark, Level

MOST, MOST_OF_LARGE, LARGE = 270, 30, 1_000
"""Queries: one rival takes seconds for each over thousands of tools."""
_BESIDE = (OURS, "dense, tools", "dense (naive RAG)", "Agent-as-a-Graph 1.5:1", "BM25 + dense, RRF (hybrid RAG)")


def worth_comparing(bench: Benchmark) -> bool:
    """Not where a second benchmark asks the same queries: the rivals know no declared order, and take long."""
    return not bench.name.endswith(("-single", "-published", "-chinese"))


def beside_rivals(bench: Benchmark, world: World, python: Path, say: Callable[[str], None]) -> dict[str, object]:
    """The body of a results file; a rival that fails is named and left out."""
    sample = bench.sample(MOST_OF_LARGE if len(bench.catalog.tools) > LARGE else MOST)
    levels, versions = {}, {}
    for level in sample.levels:
        found = {name: outcome for name, outcome in outcomes(sample, level, world) if name in _BESIDE}
        for rival, title in RIVALS.items():
            outcome, version = _outcome(rival, sample, level, world, python, say)
            if outcome is not None:
                found[title], versions[title] = outcome, version
        levels[level] = summary(sample, level, found)
    about = f"{bench.about}; other programs on the same queries with the same vectors"
    return {"about": about, "levels": levels, "rivals": versions}


def _outcome(
    rival: str, bench: Benchmark, level: Level, world: World, python: Path, say: Callable[[str], None]
) -> tuple[Outcome | None, str]:
    cases, cutoffs = bench.cases(level), bench.cutoffs_of(level)
    run = run_rival(python, rival, world, cases, level, cutoffs[-1])
    if isinstance(run, str):
        say(run)
        return None, ""
    say(f"{RIVALS[rival]} {run.version}, {level}s: {1000 * run.seconds / len(cases):.0f} ms a query, embedding apart")
    values = evaluate(run.rankings, cases, level, cutoffs)
    return Outcome(values, source=f"{RIVALS[rival]} {run.version}", seconds=run.seconds), run.version
