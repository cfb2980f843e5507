"""Runs one rival in its own environment; started by ``benchmarks.rivals``, imports nothing of this project.

Messages are lines of JSON. In: the request, then vectors. Out: ``{"embed": [texts]}`` for vectors, and at the
end ``{"rankings", "seconds", "version"}`` or ``{"error"}``.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

Rank = Callable[[str], list[str]]


class Channel:
    """The way to the process that started this one; what a rival prints goes to the error stream instead."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self.waited = 0.0

    def receive(self) -> Any:
        """The next message."""
        return json.loads(sys.stdin.readline())

    def send(self, message: dict[str, Any]) -> None:
        """One message out."""
        print(json.dumps(message), file=self._out, flush=True)

    def encode(self, texts: Sequence[str], *, kind: str = "document") -> Any:
        """The texts' vectors, ``(n, d) float32``; ``kind`` is of callbus's protocol."""
        import numpy as np

        start = time.perf_counter()
        self.send({"embed": list(texts)})
        answer = self.receive()
        self.waited += time.perf_counter() - start
        vectors = np.frombuffer(base64.b64decode(answer["vectors"]), "<f4")
        return vectors.reshape(len(texts), answer["columns"]).copy()


def graph_tool_call(agents: list[dict[str, Any]], depth: int, channel: Channel, *, embedding: bool) -> Rank:
    """graph-tool-call, as its README says; names that servers share get the server's before them, as by "prefix"."""
    from graph_tool_call import ToolGraph  # type: ignore[import-not-found]

    graph, ids = ToolGraph(), {}
    shared = Counter(tool["name"] for agent in agents for tool in agent["tools"])
    for place, agent in enumerate(agents, 1):
        entries = []
        for tool in agent["tools"]:
            name = f"{agent['id']}.{tool['name']}" if shared[tool["name"]] > 1 else tool["name"]
            ids[name] = f"{agent['id']}/{tool['name']}"
            entries.append({**tool, "name": name})
        graph.ingest_mcp_tools(entries, server_name=agent["id"], detect_dependencies=place == len(agents))
    if embedding:
        graph.enable_embedding(lambda texts: channel.encode(texts).tolist())
    return lambda query: [ids[tool.name] for tool in graph.retrieve(query, top_k=depth)]


def callbus(agents: list[dict[str, Any]], depth: int, channel: Channel, *, scorer: str) -> Rank:
    """callbus, the scorers that its ``search`` and ``serve`` build, over the text that its ingest makes."""
    from callbus.adapters.bm25 import BM25Scorer  # type: ignore[import-not-found]
    from callbus.adapters.dense import DenseScorer  # type: ignore[import-not-found]
    from callbus.adapters.hybrid import HybridScorer  # type: ignore[import-not-found]
    from callbus.domain import Query  # type: ignore[import-not-found]
    from callbus.ingest.mcp import tools_from_listing  # type: ignore[import-not-found]

    channel.name = "minilm"  # type: ignore[attr-defined]
    lexical = BM25Scorer("documentation", "plain")
    dense = DenseScorer(channel, "documentation", "plain")
    made = {"bm25": lexical, "dense": dense, "hybrid": HybridScorer(dense, lexical)}[scorer]
    made.index([tool for agent in agents for tool in tools_from_listing(agent["id"], agent["tools"])])
    return lambda query: list(made.rank([Query("0", query, {})], depth)[0].tool_ids)


def main() -> None:
    """One request, one answer."""
    channel = Channel()
    request = channel.receive()
    package, _, form = request["rival"].partition("-")
    given = request["agents"], request["depth"], channel
    try:
        if package == "gtc":
            name, rank = "graph-tool-call", graph_tool_call(*given, embedding=form == "embedding")
        else:
            name, rank = "callbus", callbus(*given, scorer=form)
        rank(request["queries"][0])
        start = time.perf_counter() - channel.waited
        rankings = [rank(query) for query in request["queries"]]
        spent = time.perf_counter() - channel.waited - start
        channel.send({"rankings": rankings, "seconds": spent, "version": version(name)})
    except Exception as error:  # noqa: BLE001 - whatever a rival raises is reported, not ours to handle
        channel.send({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
