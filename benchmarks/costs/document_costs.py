"""What it costs to index a folder of Markdown and to search it: time and peak memory, each size in its own process."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.costs.latency import memory_mb
from benchmarks.report.statistics import SEED
from benchmarks.sets.generated import MEANS, OBJECTS, QUALIFIERS, RESULTS, VERBS
from callsheet.retrievers.documents.document_index import DocumentIndex
from callsheet.retrievers.documents.interfaces import keyword_search, semantic_search

QUICK, SIZES, LARGE = 1, (10,), (100,)
"""Megabytes of Markdown."""
QUERIES, FILE_BYTES = 40, 50_000
COLUMNS = ("Markdown, MB", "index, s", "index, peak MB", "search", "p50, ms", "p95, ms", "target, ms")
ABOUT = (
    "A folder of generated Markdown, files of 50 kB, every sentence different, indexed and searched by a process of "
    "its own. Peak MB: what the process grew by until the index was built. A search by meaning embeds the sentences "
    f"of its most promising chunks, as far as no search has before: *first* is {QUERIES} queries on a new index, "
    "*again* the same queries afterwards. Targets: 10 MB indexed in 120 s, 100 MB within 1,000 MB, a search in 50 ms"
)


def measure(say: Callable[[str], None], *, quick: bool, scale: bool) -> dict[str, object]:
    """The results file's body."""
    measured = []
    for size in (QUICK,) if quick else SIZES + (LARGE if scale else ()):
        say(f"documents: {size} MB of Markdown")
        command = [sys.executable, "-m", "benchmarks.costs.document_costs", str(size)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        measured.append(json.loads(done.stdout.splitlines()[-1]))
    rows = [row for each in measured for row in rows_of(each)]
    return {"about": ABOUT, "columns": list(COLUMNS), "rows": rows, "measured": measured}


def rows_of(found: Mapping[str, object]) -> list[list[str]]:
    """The rows of one size: one for each kind of search."""
    searches = found["searches"]
    assert isinstance(searches, dict)
    index = [f"{found['megabytes']}", f"{found['index_seconds']:.0f}", f"{found['peak_mb']:.0f}"]
    return [
        [*index, name, *(f"{np.percentile(milliseconds, share):.1f}" for share in (50, 95)), "50"]
        for name, milliseconds in searches.items()
    ]


def pages(megabytes: int, seed: int = SEED) -> Iterator[str]:
    """Markdown files of about 50 kB, of this size together."""
    chance = random.Random(seed)
    left = megabytes * 1_000_000
    while left > 0:
        lines: list[str] = []
        size = 0
        while size < min(FILE_BYTES, left):
            paragraph = " ".join(_sentence(chance) for _ in range(chance.randint(2, 6)))
            lines += ["", f"## {chance.choice(OBJECTS)} {chance.randint(1, 9_999)}", "", paragraph]
            size += sum(map(len, lines[-4:])) + 4
        left -= size
        yield "\n".join(lines)


def _sentence(chance: random.Random) -> str:
    return (
        f"To {chance.choice(VERBS)} the {chance.choice(QUALIFIERS)} {chance.choice(OBJECTS)} "
        f"{chance.randint(1, 999_999)}, ask for its {chance.choice(MEANS)} and its {chance.choice(MEANS)}, then expect "
        f"{chance.choice(RESULTS)}."
    )


def _measured(megabytes: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="callsheet-documents-") as scratch:
        folder = Path(scratch) / "documents"
        folder.mkdir()
        for number, text in enumerate(pages(megabytes)):
            (folder / f"{number:05}.md").write_text(text, encoding="utf-8")
        index = DocumentIndex(folder, index=Path(scratch) / "index")
        before, start = memory_mb(), time.perf_counter()
        index.sync()
        seconds = time.perf_counter() - start
        peak = _peak_mb()
        chance = random.Random(SEED + 1)
        asked = [(chance.choice(VERBS), chance.choice(QUALIFIERS), chance.choice(OBJECTS)) for _ in range(QUERIES)]
        requests = [f"How do I {verb} the {kind} {thing}?" for verb, kind, thing in asked]
        searches = {
            "words": _milliseconds(partial(keyword_search, index, words) for words in asked),
            "meaning, first": _milliseconds(partial(semantic_search, index, request) for request in requests),
            "meaning, again": _milliseconds(partial(semantic_search, index, request) for request in requests),
        }
    return {"megabytes": megabytes, "index_seconds": seconds, "peak_mb": peak - before, "searches": searches}


def _peak_mb() -> float:
    """The most memory that this process has had, megabytes; on Linux, ``ru_maxrss`` also counts its parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return memory_mb()  # the peak, there
    return int(status.read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]) / 1e3


def _milliseconds(searches: Iterable[Callable[[], object]]) -> list[float]:
    taken = []
    for search in searches:
        start = time.perf_counter()
        search()
        taken.append(1_000 * (time.perf_counter() - start))
    return taken


if __name__ == "__main__":
    print(json.dumps(_measured(int(sys.argv[1]))))
