"""What a query costs beside one bare query embedding, what an index costs beside its embeddings, and memory.

Ratios, measured in one run and interleaved, because a machine's milliseconds are its own.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.report.statistics import DRAWS, SEED, Interval
from benchmarks.sets.generated import generated_catalog, generated_queries
from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings

QUERIES, AT_ONCE = 100, 32
SIZES, LARGE = (1_000, 4_000, 10_000), (50_000, 100_000)
TARGETS: Mapping[int, str] = {4_000: "1.25", 50_000: "1.5", 100_000: "2; 400 MB"}
ABOUT = (
    "One selection against one bare query embedding, and an index against its embeddings, in memory. Again: the same "
    "queries once more. 32 at once: processor time of 100 selections by 32 threads, by that of 100 one after another "
    "(target 1.3). Target: of select / embedding, and of the memory; an index may take 1.05 of its embeddings"
)


class TimedEmbeddings(MiniLMEmbeddings):
    """The embedded MiniLM with a clock on it."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """As in ``MiniLMEmbeddings``."""
        start = time.perf_counter()
        vectors = super().encode(texts)
        self.seconds += time.perf_counter() - start
        return vectors


class DrawnEmbeddings(TimedEmbeddings):
    """The embedded MiniLM for queries, and vectors drawn at random for the texts of an index.

    What a query costs does not depend on where the vectors of an index point, and 100,000 texts would take long.
    """

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Random unit vectors, but for a single text, which is a query."""
        if len(texts) == 1:
            return super().encode(texts)
        drawn = np.random.default_rng(SEED).standard_normal((len(texts), 384), np.float32)
        return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Cost:
    """What one catalog costs.

    Attributes:
        catalog: Its name.
        tools: How many tools it holds.
        embedding_ms: Median of one bare query embedding, milliseconds.
        select_ms: Median of one selection, its embedding included.
        ratio: The second by the first, with its interval.
        repeated_ms: Median of the same selections made again.
        at_once_ratio: Processor time of selections by 32 threads, by that of as many others one after another.
        build_seconds: Loading texts to a searchable index, in memory.
        build_ratio: That by the seconds that the embedder alone took in it; None where the vectors are drawn.
        memory_mb: What the process grew by while building, megabytes.
    """

    catalog: str
    tools: int
    embedding_ms: float
    select_ms: float
    ratio: Interval
    repeated_ms: float
    at_once_ratio: float
    build_seconds: float
    build_ratio: float | None
    memory_mb: float


def cost(name: str, catalog: Catalog, queries: Sequence[str], *, drawn: bool = False) -> Cost:
    """Builds an index of a catalog, with drawn vectors where said so, and times its queries."""
    embedder = DrawnEmbeddings() if drawn else TimedEmbeddings()
    embedder.embed_query("warm")
    embedder.seconds, before, start = 0.0, memory_mb(), time.perf_counter()
    retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=embedder)
    build, embedding = time.perf_counter() - start, embedder.seconds
    bare, full = interleaved(embedder.embed_query, retriever.select, queries)
    again, _ = interleaved(retriever.select, lambda query: None, queries)
    others = [f"{query} Now." for query in queries], [f"{query} Soon." for query in queries]
    return Cost(
        catalog=name,
        tools=len(catalog.tools),
        embedding_ms=1000 * float(np.median(bare)),
        select_ms=1000 * float(np.median(full)),
        ratio=ratio_of_medians(full, bare),
        repeated_ms=1000 * float(np.median(again)),
        at_once_ratio=_processor(retriever.select, others[0], AT_ONCE) / _processor(retriever.select, others[1], 1),
        build_seconds=build,
        build_ratio=None if drawn else build / embedding,
        memory_mb=memory_mb() - before,
    )


def _processor(search: Callable[[str], object], queries: Sequence[str], threads: int) -> float:
    """Seconds of the processor that the queries take, so many at once."""
    with ThreadPoolExecutor(threads) as pool:
        start = time.process_time()
        list(pool.map(search, queries))
        return time.process_time() - start


def interleaved(
    first: Callable[[str], object], second: Callable[[str], object], queries: Sequence[str]
) -> tuple[list[float], list[float]]:
    """Seconds of both for every query, turn about, so that a busy moment meets both."""
    taken: tuple[list[float], list[float]] = ([], [])
    for call in (first, second):
        call(queries[0])
    for turn, query in enumerate(queries):
        for which in (0, 1) if turn % 2 else (1, 0):
            start = time.perf_counter()
            (first, second)[which](query)
            taken[which].append(time.perf_counter() - start)
    return taken


def ratio_of_medians(
    over: Sequence[float], under: Sequence[float], *, draws: int = DRAWS, seed: int = SEED
) -> Interval:
    """The median of one by the median of the other, with its 95 % bootstrap interval over queries."""
    pairs = np.array([over, under])
    drawn = np.random.default_rng(seed).integers(pairs.shape[1], size=(draws, pairs.shape[1]))
    medians = np.median(pairs[:, drawn], axis=2)
    low, high = np.percentile(medians[0] / medians[1], [2.5, 97.5])
    whole = np.median(pairs, axis=1)
    return Interval(float(whole[0] / whole[1]), float(low), float(high))


def measure(
    livemcp: tuple[Catalog, Sequence[str]] | None, *, quick: bool, scale: bool, say: Callable[[str], None]
) -> dict[str, object]:
    """The costs of LiveMCPBench's catalog, where it is there, and of generated ones, as a results file's body."""
    costs = []
    if livemcp is not None:
        costs.append(cost("LiveMCPBench", livemcp[0], livemcp[1][:QUERIES]))
    for size in (SIZES[:1] if quick else SIZES) + (LARGE if scale else ()):
        say(f"latency: generating and indexing {size:,} tools")
        drawn = size in LARGE
        name = "generated, drawn vectors" if drawn else "generated"
        costs.append(cost(name, generated_catalog(size), generated_queries(QUERIES), drawn=drawn))
    columns = [
        "catalog", "tools", "embedding, ms", "select, ms", "select / embedding", "again, ms", "32 at once", "index, s",
        "index / embedding", "MB", "target",
    ]  # fmt: skip
    return {
        "about": ABOUT,
        "columns": columns,
        "rows": [_row(each) for each in costs],
        "costs": [asdict(each) for each in costs],
    }


def _row(each: Cost) -> list[str]:
    return [
        each.catalog,
        f"{each.tools:,}",
        f"{each.embedding_ms:.1f}",
        f"{each.select_ms:.1f}",
        f"{each.ratio.mean:.2f} [{each.ratio.low:.2f}, {each.ratio.high:.2f}]",
        f"{each.repeated_ms:.1f}",
        f"{each.at_once_ratio:.2f}",
        f"{each.build_seconds:.1f}",
        "" if each.build_ratio is None else f"{each.build_ratio:.2f}",
        f"{each.memory_mb:.0f}",
        TARGETS.get(each.tools, ""),
    ]


def memory_mb() -> float:
    """Resident memory of this process, megabytes; its peak where the system does not tell the present."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
