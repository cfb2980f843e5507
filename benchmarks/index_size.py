"""Up to which size exact search in memory is the better one: time and memory beside Chroma's HNSW, and its recall."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.bootstrap import SEED
from benchmarks.latency import memory_mb
from benchmarks.sets.loaders import load_benchmarks
from callsheet.graphs import Agent, Catalog, Tool
from callsheet.graphs.storage import cache_folder
from callsheet.retrievers import MiniLMEmbeddings, nodes_of
from callsheet.retrievers.index.node_texts import Node
from callsheet.retrievers.index.rows import HNSW, MOST_AT_ONCE, ChromaRows, products

SIZES = (5_000, 20_000, 50_000, 100_000)
SETS = ("livemcpbench", "toollinkos-published", "toolsandbox", "restbench", "sealtools", "metatool")
QUERIES, NEAREST, HITS, _PAGE = 200, 30, 200, 2_000
WIDTHS = (100, 400)
COLUMNS = ("nodes", "search", "ms", f"recall of the exact {NEAREST}", "MB", "built in, s")
_ABOUT = (
    "One query against all nodes in memory, and by HNSW in Chroma with several ef_search, which returns 200 nodes: "
    "medians of 200 queries of the sets. Nodes: the tools of all sets, beyond 6,000 again with other owners and "
    "parameters. MB: vectors in memory; what the process grew by with Chroma's index"
)


def varied_nodes(data: Path, size: int) -> tuple[list[Node], list[str]]:
    """So many nodes, and queries. The tools of all sets; once they are used up, again with other owners and parameters.

    The owner's name and some of the parameters change, as between servers that offer nearly the same.
    """
    benches = load_benchmarks(data, SETS)[0]
    agents = [agent for catalog in {id(b.catalog): b.catalog for b in benches}.values() for agent in catalog.agents]
    chance, nodes, copy = random.Random(SEED), list[Node](), 0
    names = [agent.name or agent.id for agent in agents]
    while len(nodes) < size:
        chance.shuffle(names)
        for agent, name in zip(agents, names, strict=True):
            nodes += nodes_of(Catalog(agents=(_varied(agent, name, copy, chance),)))
        copy += 1
    queries = [case.query for bench in benches for case in bench.queries]
    return nodes[:size], chance.sample(queries, QUERIES)


def _varied(agent: Agent, name: str, copy: int, chance: random.Random) -> Agent:
    own = f"{name}-{copy}-{agent.id}" if copy else agent.id
    name = name if copy else agent.name
    return Agent(
        id=own,
        name=name,
        description=agent.description,
        tools=tuple(_tool(t, own, chance if copy else None) for t in agent.tools),
    )


def _tool(tool: Tool, agent: str, chance: random.Random | None) -> Tool:
    properties = dict(tool.input_schema.get("properties", {}))
    some = chance.sample(list(properties), chance.randint(0, len(properties))) if chance else list(properties)
    schema = {"type": "object", "properties": {field: properties[field] for field in some}}
    return Tool(agent=agent, name=tool.name, description=tool.description, input_schema=schema)


def vectors_of(nodes: Sequence[Node]) -> np.ndarray:
    """Their vectors, as the index makes them; they are kept in the cache, because 100,000 take half an hour."""
    file = cache_folder() / f"benchmark-nodes-{len(nodes)}.npy"
    if file.is_file():
        return np.load(file)
    embedder, known = MiniLMEmbeddings(), dict[str, np.ndarray]()
    texts = sorted({text for node in nodes for text in (node.text, *(view for view, _ in node.views))}, key=len)
    for start in range(0, len(texts), _PAGE):
        page = texts[start : start + _PAGE]
        known.update(zip(page, embedder.encode(page), strict=True))
        print(start, len(texts), flush=True)
    rows = [
        (1 - sum(weight for _, weight in node.views)) * known[node.text]
        + sum(weight * known[view] for view, weight in node.views)
        for node in nodes
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    np.save(file, np.array(rows, np.float32))
    return np.array(rows, np.float32)


def measure(data: Path, say: Callable[[str], None], sizes: Sequence[int] = SIZES) -> Mapping[str, object]:
    """A results file's body: exact search and HNSW over the same nodes and queries."""
    nodes, texts = varied_nodes(data, max(sizes))
    vectors, queries, rows = vectors_of(nodes), MiniLMEmbeddings().encode(texts), list[list[str]]()
    for size in sizes:
        say(f"index-size: {size:,} nodes")
        rows += ([f"{size:,}", *row] for row in _compared(vectors[:size], queries))
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def _compared(vectors: np.ndarray, queries: np.ndarray) -> Iterator[list[str]]:
    exact, ms = _timed(lambda query: products(vectors, query)[0], queries)
    wanted = [{str(row) for row in np.argsort(-scores)[:NEAREST]} for scores in exact]
    yield ["in memory", ms, "1.000", f"{vectors.nbytes / 1e6:.0f}", ""]
    for width in WIDTHS:
        with TemporaryDirectory() as folder, patch.dict(HNSW, ef_search=width):
            stored, before, start = ChromaRows("index-size", folder), memory_mb(), time.perf_counter()
            for first in range(0, len(vectors), MOST_AT_ONCE):
                page = vectors[first : first + MOST_AT_ONCE]
                stored.add([str(first + row) for row in range(len(page))], page)
            built = time.perf_counter() - start
            found, ms = _timed(lambda query, stored=stored: stored.nearest(query, HITS)[0], queries)  # type: ignore[misc]
            kept = [len(want & {*list(hits)[:NEAREST]}) / NEAREST for want, hits in zip(wanted, found, strict=True)]
            yield [f"Chroma, ef {width}", ms, f"{np.mean(kept):.3f}", f"{memory_mb() - before:.0f}", f"{built:.0f}"]


def _timed(search: Callable[[np.ndarray], Any], queries: np.ndarray) -> tuple[list[Any], str]:
    """What each query finds, and the median of their milliseconds."""
    answers, seconds = [], []
    for query in queries:
        start = time.perf_counter()
        answers.append(search(query[None]))
        seconds.append(time.perf_counter() - start)
    return answers, f"{1000 * float(np.median(seconds)):.1f}"
