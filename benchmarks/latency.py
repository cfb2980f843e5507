"""What a query costs beside one bare query embedding, and an index beside its embeddings, also for large catalogs.

Ratios, measured in one run and interleaved, because a machine's milliseconds are its own. The catalogs come from a
small grammar, for measuring time and memory, never for measuring quality.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.bootstrap import DRAWS, SEED, Interval
from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings

Say = Callable[[str], None]
VERBS = """
    create read update delete list search export import archive share approve assign schedule cancel validate
    merge compare translate summarise convert publish restore duplicate lock tag
""".split()
OBJECTS = """
    invoice ticket contact calendar playlist recipe shipment contract dataset image video branch deployment sensor
    booking payment refund survey lesson prescription portfolio order campaign subscription itinerary warranty
    inventory timesheet meeting newsletter dashboard database bucket certificate vehicle apartment article
    donation tournament translation
""".split()
QUALIFIERS = """
    draft overdue shared archived monthly regional public private recurring temporary verified flagged partial
    scheduled external internal historical current pending duplicate
""".split()
MEANS = ("identifier", "name", "date range", "owner", "status", "location", "keyword", "category")
RESULTS = ("the changed record", "a list of matches", "a confirmation", "a link to the file", "a short report")
FIELDS = ("id", "name", "start_date", "end_date", "owner", "status", "city", "keyword", "limit", "format")
TOOLS_AN_AGENT = 10
QUERIES, AT_ONCE = 100, 32
SIZES, LARGE = (1_000, 4_000, 10_000), (50_000, 100_000)
TARGETS: Mapping[int, str] = {4_000: "1.25", 50_000: "1.5", 100_000: "2; 400 MB"}
COLUMNS = (
    "catalog", "tools", "embedding, ms", "select, ms", "select / embedding", "again, ms", "32 at once", "index, s",
    "index / embedding", "MB", "target",
)  # fmt: skip
_ABOUT = (
    "One selection against one bare query embedding, and an index against its embeddings, in memory, of drawn vectors "
    "in Chroma. Again: the same "
    "queries once more. 32 at once: processor time of 100 selections by 32 threads, by that of 100 one after another "
    "(target 1.3). Target: of select / embedding, and of the memory; an index may take 1.05 of its embeddings"
)


class TimedEmbeddings(MiniLMEmbeddings):
    """The embedded MiniLM with a clock on it; for the texts of an index, vectors may be made in another way."""

    def __init__(self, made: Callable[[Sequence[str]], np.ndarray] | None = None) -> None:
        super().__init__()
        self.seconds, self._made = 0.0, made

    @property
    def name(self) -> str:
        """Which vectors these are."""
        return "made" if self._made else super().name

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """As in ``MiniLMEmbeddings``; a single text is a query."""
        if self._made and len(texts) > 1:
            vectors = self._made(texts)
            return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        start = time.perf_counter()
        vectors = super().encode(texts)
        self.seconds += time.perf_counter() - start
        return vectors


def drawn_vectors(texts: Sequence[str]) -> np.ndarray:
    """Random vectors: what a query costs does not depend on where those of an index point, and texts take long."""
    return np.random.default_rng(SEED).standard_normal((len(texts), 384), np.float32)


def measure(
    livemcp: tuple[Catalog, Sequence[str]] | None, *, quick: bool, scale: bool, say: Say
) -> Mapping[str, object]:
    """The costs of LiveMCPBench's catalog, where it is there, and of generated ones, as a results file's body."""
    costs = []
    if livemcp is not None:
        costs.append(cost("LiveMCPBench", livemcp[0], livemcp[1][:QUERIES]))
    for size in (SIZES[:1] if quick else SIZES) + (LARGE if scale else ()):
        say(f"latency: generating and indexing {size:,} tools")
        drawn = size in LARGE
        name = "generated, drawn vectors" if drawn else "generated"
        costs.append(cost(name, generated_catalog(size), generated_queries(QUERIES), drawn=drawn))
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": list(map(_row, costs)), "costs": costs}


def cost(name: str, catalog: Catalog, queries: Sequence[str], *, drawn: bool = False) -> dict[str, Any]:
    """Builds an index of a catalog in memory, or, with drawn vectors, in a folder, and times its queries."""
    embedder = TimedEmbeddings(drawn_vectors if drawn else None)
    embedder.embed_query("warm")
    embedder.seconds, before, start = 0.0, memory_mb(), time.perf_counter()
    folder = TemporaryDirectory()
    index = folder.name if drawn else ":memory:"
    retriever = AgentGraphRetriever.from_catalog(catalog, index=index, embeddings=embedder)
    build, embedding = time.perf_counter() - start, embedder.seconds
    bare, full = interleaved(embedder.embed_query, retriever.select, queries)
    again, _ = interleaved(retriever.select, lambda query: None, queries)
    others = [f"{query} Now." for query in queries], [f"{query} Soon." for query in queries]
    return {
        "catalog": name,
        "tools": len(catalog.tools),
        "embedding_ms": 1000 * float(np.median(bare)),
        "select_ms": 1000 * float(np.median(full)),
        "ratio": asdict(ratio_of_medians(full, bare)),
        "repeated_ms": 1000 * float(np.median(again)),
        "at_once_ratio": _processor(retriever.select, others[0], AT_ONCE) / _processor(retriever.select, others[1], 1),
        "build_seconds": build,
        "build_ratio": None if drawn else build / embedding,
        "memory_mb": memory_mb() - before,
    }


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
            taken[which].append(_seconds((first, second)[which], query))
    return taken


def _seconds(call: Callable[[str], object], query: str) -> float:
    start = time.perf_counter()
    call(query)
    return time.perf_counter() - start


def ratio_of_medians(over: Sequence[float], under: Sequence[float]) -> Interval:
    """The median of one by the median of the other, with its 95 % bootstrap interval over queries."""
    pairs = np.array([over, under])
    drawn = np.random.default_rng(SEED).integers(pairs.shape[1], size=(DRAWS, pairs.shape[1]))
    medians = np.median(pairs[:, drawn], axis=2)
    low, high = np.percentile(medians[0] / medians[1], [2.5, 97.5])
    whole = np.median(pairs, axis=1)
    return Interval(float(whole[0] / whole[1]), float(low), float(high))


def _row(each: Mapping[str, Any]) -> list[str]:
    return [
        each["catalog"],
        f"{each['tools']:,}",
        f"{each['embedding_ms']:.1f}",
        f"{each['select_ms']:.1f}",
        "{mean:.2f} [{low:.2f}, {high:.2f}]".format(**each["ratio"]),
        f"{each['repeated_ms']:.1f}",
        f"{each['at_once_ratio']:.2f}",
        f"{each['build_seconds']:.1f}",
        "" if each["build_ratio"] is None else f"{each['build_ratio']:.2f}",
        f"{each['memory_mb']:.0f}",
        TARGETS.get(each["tools"], ""),
    ]


def memory_mb() -> float:
    """Resident memory of this process, megabytes; its peak where the system does not tell the present."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def generated_catalog(tools: int, seed: int = 7) -> Catalog:
    """A catalog of so many tools, ten an agent; the same for the same seed."""
    chance = random.Random(seed)
    agents = [
        _agent(number, min(TOOLS_AN_AGENT, tools - first), chance)
        for number, first in enumerate(range(0, tools, TOOLS_AN_AGENT))
    ]
    return Catalog(agents=tuple(agents))


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
    about = (
        f"{verb.capitalize()}s the {qualifier} {thing} by its {chance.choice(MEANS)}. Gives {chance.choice(RESULTS)}."
    )
    return Tool(agent=agent, name=f"{verb}_{qualifier}_{thing}", description=about, input_schema=schema)
