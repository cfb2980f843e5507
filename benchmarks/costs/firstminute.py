"""The first minute: what ``retrieve``, ``ask`` up to its plan and ``documents index`` cost a processor.

Seconds of a shared machine say little, so each stands beside something bare of the same run: an interpreter that
imports numpy, or the model embedding every sentence of the same documents.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.costs.coldstart import BIN, ROOT, Took, in_turn, prepared, ran
from callsheet.retrievers.documents import LOADERS, passages_of
from callsheet.retrievers.index.embedding import MiniLM

ROUNDS = 3
COLUMNS = ("", "processor", "clock", "beside", "its processor", "ratio of processor times")
REQUEST = "search the private deployment, then summarise the partial survey"
_ABOUT = (
    f"Seconds of processor (user and system) and on the clock, medians of {ROUNDS} processes in turn with what is "
    "named beside them. Over 1,000 generated tools whose index is built; `ask` until its plan; `documents index` "
    "over this repository's docs, once"
)


def measure(say: Callable[[str], None], *, quick: bool = False) -> Mapping[str, object]:
    """The body of the results file."""
    rounds = 2 if quick else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        env = prepared(Path(name))
        bare = [sys.executable, "-c", "import numpy"]
        rows = []
        for what, ours in (
            ("`callsheet retrieve`", lambda: ran([str(BIN / "callsheet"), "retrieve", REQUEST], env)),
            ("`callsheet ask`, to its plan", lambda: _planned(env)),
        ):
            say(what)
            found, beside = in_turn(ours, lambda: ran(bare, env), rounds)
            rows.append(_row(what, found, "an interpreter that imports numpy", beside))
        say("documents")
        rows.append(_documents(env))
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def _planned(env: Mapping[str, str]) -> Took:
    """A run from its start until the plan is on standard output; it is ended there."""
    began = time.perf_counter()
    words = [str(BIN / "callsheet"), "ask", REQUEST]
    process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    if not any("planned by" in line for line in process.stdout):
        raise RuntimeError(f"ask ended with status {process.wait()} and showed no plan")
    wall, used = time.perf_counter() - began, _used(process.pid)
    process.kill()
    process.communicate()
    return Took(wall, used)


def _used(pid: int) -> float:
    """Seconds of processor that a running process has used, of Linux."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _documents(env: Mapping[str, str]) -> list[str]:
    folder = ROOT / "docs"
    files = sorted(folder.rglob("*.md"))
    size = sum(file.stat().st_size for file in files) / 100_000
    took = ran([str(BIN / "callsheet"), "documents", "index", str(folder)], env)
    sentences = {s for file in files for passage in passages_of(LOADERS[".md"](file)) for s in passage.sentences}
    before, clock = _self(), time.perf_counter()
    MiniLM().encode(sorted(sentences))
    bare = Took(time.perf_counter() - clock, _self() - before)
    per = [Took(one.wall / size, one.processor / size) for one in (took, bare)]
    return _row("`documents index`, 100 KB of Markdown", per[:1], "embedding every sentence of it", per[1:])


def _self() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _row(what: str, ours: list[Took], name: str, beside: list[Took]) -> list[str]:
    work, other = (statistics.median(took.processor for took in found) for found in (ours, beside))
    wall = statistics.median(took.wall for took in ours)
    return [what, f"{work:.2f}", f"{wall:.2f}", name, f"{other:.2f}", f"{work / other:.2f}"]
