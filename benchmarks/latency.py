"""What a query costs beside one bare query embedding, and an index beside its embeddings, also for large catalogs.

Ratios, measured in one run and interleaved, because a machine's milliseconds are its own; of time by the clock, and of
processor time, on which other work of the machine has less influence. The catalogs come from a
small grammar, for measuring time and memory, never for measuring quality. And up to which size exact search in memory
is better than Chroma's HNSW, over nodes of the public sets: time, memory and recall.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.bootstrap import DRAWS, SEED, Interval, cell
from benchmarks.search import vectors_of_this_run
from benchmarks.sets.loaders import load_benchmarks
from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings, nodes_of
from callsheet.retrievers.index.rows import HNSW, MOST_AT_ONCE, ChromaRows, products

Say = Callable[[str], None]
VERBS = "create read update delete list search export share approve schedule compare publish".split()
OBJECTS = """
    invoice ticket contact calendar playlist recipe shipment contract dataset image video branch deployment sensor
    booking payment refund survey lesson prescription portfolio order campaign subscription itinerary warranty
""".split()
QUALIFIERS = "draft overdue shared archived monthly regional public private recurring verified partial pending".split()
MEANS = ("identifier", "name", "date range", "owner", "status", "location", "keyword", "category")
RESULTS = ("the changed record", "a list of matches", "a confirmation", "a link to the file", "a short report")
FIELDS = ("id", "name", "start_date", "end_date", "owner", "status", "city", "keyword", "limit", "format")
TOOLS_AN_AGENT, QUERIES, AT_ONCE = 10, 100, 32
SIZES, LARGE = (4_000, 10_000), (100_000,)
TARGETS: Mapping[int, str] = {4_000: "1.5", 10_000: "1.7", 100_000: "2; 400 MB"}
KNOWN, KNOWN_TARGET = "LiveMCPBench", "1.4"
COLUMNS = (
    "catalog", "tools", "embedding, ms", "select, ms", "select / embedding", "in processor time", "target",
    "again, ms", "32 at once", "index, s", "index / embedding", "MB",
)  # fmt: skip
_ABOUT = (
    "One selection against one bare query embedding, turn about, and an index against its embeddings, in memory, of "
    "drawn vectors in Chroma. Milliseconds are by the clock; the ratio is given by the clock and in processor time of "
    "all threads. Again: the same queries once more. 32 at once: processor time of 100 selections by 32 threads, by "
    "that of 100 one after another (target 1.3). MB: what the process grew by. Target: of select / embedding, and of "
    "the memory"
)


class Spent(NamedTuple):
    """What a call took: seconds by the clock, and seconds of the processor in all threads."""

    clock: float
    processor: float


def generated_catalog(tools: int, seed: int = 7) -> Catalog:
    """A catalog of so many tools, ten an agent; the same for the same seed."""
    chance = random.Random(seed)
    firsts = enumerate(range(0, tools, TOOLS_AN_AGENT))
    return Catalog(agents=tuple(_agent(number, min(TOOLS_AN_AGENT, tools - at), chance) for number, at in firsts))


def generated_queries(count: int, seed: int = 7) -> list[str]:
    """Requests in the words of the same grammar."""
    chance = random.Random(seed + 1)
    return [
        f"Please {chance.choice(VERBS)} the {chance.choice(QUALIFIERS)} {chance.choice(OBJECTS)} "
        f"by {chance.choice(MEANS)} and give me {chance.choice(RESULTS)}."
        for _ in range(count)
    ]


def _agent(number: int, tools: int, chance: random.Random) -> Agent:
    thing = OBJECTS[number % len(OBJECTS)]
    agent = f"{chance.choice(QUALIFIERS)}-{thing}-{number}"
    names = chance.sample(list(product(VERBS, QUALIFIERS)), tools)
    return Agent(
        id=agent,
        description=f"Works with every {thing}: {', '.join(sorted({verb for verb, _ in names}))}.",
        tools=tuple(_tool(agent, verb, qualifier, thing, chance) for verb, qualifier in names),
    )


def _tool(agent: str, verb: str, qualifier: str, thing: str, chance: random.Random) -> Tool:
    fields = chance.sample(FIELDS, chance.randint(1, 4))
    schema = {
        "type": "object",
        "properties": {f: {"type": "string", "description": f"The {f.replace('_', ' ')}."} for f in fields},
        "required": fields[:1],
    }
    about = f"{verb.title()}s the {qualifier} {thing} by its {chance.choice(MEANS)}. Gives {chance.choice(RESULTS)}."
    return Tool(agent=agent, name=f"{verb}_{qualifier}_{thing}", description=about, input_schema=schema)


class TimedEmbeddings(MiniLMEmbeddings):
    """The embedded MiniLM with a clock on it; drawn vectors for an index, because a query costs the same over those."""

    def __init__(self, *, drawn: bool = False) -> None:
        super().__init__()
        self.seconds, self._drawn = 0.0, drawn

    @property
    def name(self) -> str:
        """Which vectors these are."""
        return "drawn" if self._drawn else super().name

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """As in ``MiniLMEmbeddings``; a single text is a query."""
        if self._drawn and len(texts) > 1:
            vectors = np.random.default_rng(SEED).standard_normal((len(texts), 384), np.float32)
            return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        vectors, spent = _timed(super().encode, texts)
        self.seconds += spent.clock
        return vectors


def measure(data: Path, say: Say, *, scale: bool) -> Mapping[str, object]:
    """The costs of LiveMCPBench's catalog, where it is there, and of generated ones, as a results file's body."""
    known = load_benchmarks(data, ["livemcpbench-steps"])[0][:1]
    rows = [cost(KNOWN, one.catalog, [case.query for case in one.queries[:QUERIES]]) for one in known]
    for size in SIZES + (LARGE if scale else ()):
        say(f"latency: generating and indexing {size:,} tools")
        drawn = size in LARGE
        name = "generated, drawn vectors" if drawn else "generated"
        rows.append(cost(name, generated_catalog(size), generated_queries(QUERIES), drawn=drawn))
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def cost(name: str, catalog: Catalog, queries: Sequence[str], *, drawn: bool = False) -> list[str]:
    """A row: builds an index of a catalog in memory, or, with drawn vectors, in a folder, and times its queries."""
    embedder = TimedEmbeddings(drawn=drawn)
    embedder.embed_query("warm")
    embedder.seconds, before = 0.0, memory_mb()
    with TemporaryDirectory() as folder:
        index = folder if drawn else ":memory:"
        retriever, build = _timed(
            lambda source: AgentGraphRetriever.from_catalog(source, index=index, embeddings=embedder), catalog
        )
        embedding = embedder.seconds
        bare, full = interleaved(embedder.embed_query, retriever.select, queries)
        again = [_timed(retriever.select, query)[1].clock for query in queries]
        at_once, one_by_one = (
            _processor_seconds(retriever.select, [f"{query} {word}." for query in queries], threads)
            for word, threads in (("Now", AT_ONCE), ("Soon", 1))
        )
        grown = memory_mb() - before
    tools = len(catalog.tools)
    bare_clock, bare_processor = zip(*bare, strict=True)
    full_clock, full_processor = zip(*full, strict=True)
    bare_ms, full_ms, again_ms = (f"{1000 * float(np.median(spent)):.1f}" for spent in (bare_clock, full_clock, again))
    ratio = cell(ratio_of_medians(full_clock, bare_clock), ".2f")
    of_processor = cell(ratio_of_medians(full_processor, bare_processor), ".2f")
    of_embedding = "" if drawn else f"{build.clock / embedding:.2f}"
    target = KNOWN_TARGET if name == KNOWN else TARGETS.get(tools, "")
    return [
        name, f"{tools:,}", bare_ms, full_ms, ratio, of_processor, target, again_ms, f"{at_once / one_by_one:.2f}",
        f"{build.clock:.1f}", of_embedding, f"{grown:.0f}",
    ]  # fmt: skip


def _processor_seconds(search: Callable[[str], object], queries: Sequence[str], threads: int) -> float:
    with ThreadPoolExecutor(threads) as pool:
        start = time.process_time()
        list(pool.map(search, queries))
        return time.process_time() - start


def interleaved(
    first: Callable[[str], object], second: Callable[[str], object], queries: Sequence[str]
) -> tuple[list[Spent], list[Spent]]:
    """What both take for every query, turn about, so that a busy moment meets both."""
    taken: tuple[list[Spent], list[Spent]] = ([], [])
    for turn, query in enumerate((queries[0], *queries)):
        for which in (0, 1) if turn % 2 else (1, 0):
            taken[which].append(_timed((first, second)[which], query)[1])
    return taken[0][1:], taken[1][1:]


def _timed(call: Callable[[Any], Any], argument: Any) -> tuple[Any, Spent]:
    """What a call gives, and what it takes."""
    clock, processor = time.perf_counter(), time.process_time()
    result = call(argument)
    return result, Spent(time.perf_counter() - clock, time.process_time() - processor)


def ratio_of_medians(over: Sequence[float], under: Sequence[float]) -> Interval:
    """The median of one by the median of the other, with its 95 % bootstrap interval over queries."""
    pairs = np.array([over, under])
    drawn = np.random.default_rng(SEED).integers(pairs.shape[1], size=(DRAWS, pairs.shape[1]))
    medians = np.median(pairs[:, drawn], axis=2)
    low, high = np.percentile(medians[0] / medians[1], [2.5, 97.5])
    whole = np.median(pairs, axis=1)
    return Interval(float(whole[0] / whole[1]), float(low), float(high))


def memory_mb() -> float:
    """Resident memory of this process, megabytes; its peak where the system does not tell the present."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


NODES = (5_000, 20_000, 50_000, 100_000)
SETS = ("livemcpbench", "toollinkos-published", "toolsandbox", "restbench", "sealtools", "metatool")
NEAREST, HITS, WIDTHS, NOISE = 30, 200, (100, 400), 0.5
SIZE_COLUMNS = ("nodes", "search", "ms", f"recall of the exact {NEAREST}", "MB", "built in, s")
_ABOUT_SIZE = (
    "One query against all nodes in memory, and by HNSW in Chroma with several ef_search, which returns 200 nodes: "
    "medians of 200 queries of the sets. Nodes: the tools of all sets, beyond 6,000 random ones again with noise of "
    "half their length. MB: vectors in memory; what the process grew by with Chroma's index"
)


def measure_index_size(data: Path, say: Say) -> Mapping[str, object]:
    """A results file's body: exact search and HNSW over the same nodes and queries."""
    benches, chance = load_benchmarks(data, SETS)[0], np.random.default_rng(SEED)
    catalogs = {id(bench.catalog): bench.catalog for bench in benches}
    texts = [node.text for catalog in catalogs.values() for node in nodes_of(catalog)]
    asked = [case.query for bench in benches for case in bench.queries]
    own, queries = (vectors_of_this_run().encode(some) for some in (texts, asked[:: len(asked) // HITS][:HITS]))
    copies = own[chance.integers(len(own), size=max(NODES) - len(own))]
    copies = copies + chance.normal(scale=NOISE / np.sqrt(copies.shape[1]), size=copies.shape)
    vectors = np.concatenate([own, copies / np.linalg.norm(copies, axis=1, keepdims=True)]).astype(np.float32)
    rows = []
    for size in NODES:
        say(f"index-size: {size:,} nodes")
        rows += [[f"{size:,}", *row] for row in _compared(vectors[:size], queries)]
    return {"about": _ABOUT_SIZE, "columns": list(SIZE_COLUMNS), "rows": rows}


def _compared(vectors: np.ndarray, queries: np.ndarray) -> Iterator[list[str]]:
    exact, ms = _all_timed(lambda query: products(vectors, query)[0], queries)
    wanted = [{str(row) for row in np.argsort(-scores)[:NEAREST]} for scores in exact]
    yield ["in memory", ms, "1.000", f"{vectors.nbytes / 1e6:.0f}", ""]
    for width in WIDTHS:
        with TemporaryDirectory() as folder, patch.dict(HNSW, ef_search=width):
            stored, before, start = ChromaRows("index-size", folder), memory_mb(), time.perf_counter()
            for first in range(0, len(vectors), MOST_AT_ONCE):
                page = vectors[first : first + MOST_AT_ONCE]
                stored.add([str(first + row) for row in range(len(page))], page)
            built = time.perf_counter() - start
            found, ms = _all_timed(lambda query, stored=stored: stored.nearest(query, HITS)[0], queries)  # type: ignore[misc]
            kept = [len(want & {*list(hits)[:NEAREST]}) / NEAREST for want, hits in zip(wanted, found, strict=True)]
            yield [f"Chroma, ef {width}", ms, f"{np.mean(kept):.3f}", f"{memory_mb() - before:.0f}", f"{built:.0f}"]


def _all_timed(search: Callable[[np.ndarray], Any], queries: np.ndarray) -> tuple[list[Any], str]:
    """What each query finds, and the median of their milliseconds."""
    answers, spent = zip(*(_timed(search, query[None]) for query in queries), strict=True)
    return list(answers), f"{1000 * float(np.median([one.clock for one in spent])):.1f}"
