"""An embedder that counts, and a process that indexes with it and stops in the middle."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings

from callsheet.retrievers import ChromaIndex, Node
from forked import Forked


class Counting(Embeddings):
    """Random but repeatable vectors; it remembers what it was asked for."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.extend(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return np.random.default_rng(list(text.encode())).normal(size=16).tolist()


OTHER_PROCESS = """
import os, signal, sys
sys.path.insert(0, {here!r})
from counting import Counting, nodes
from callsheet.retrievers import ChromaIndex

class Stopping(Counting):
    def embed_documents(self, texts):
        vectors = super().embed_documents(texts)
        if {act!r} == "die" and len(self.asked) > 300:
            os.kill(os.getpid(), signal.SIGKILL)
        if {act!r} == "wait" and len(self.asked) <= 300:
            print("indexing", flush=True)
            sys.stdin.readline()
        return vectors

index = ChromaIndex(Stopping(), catalog="c", recipe="r1", where={where!r})
index.sync(nodes("new", 600))
print("done", flush=True)
"""


def other_process(act: str, where: str | Path) -> Forked:
    script = OTHER_PROCESS.format(here=str(Path(__file__).parent), act=act, where=str(where))
    env = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
    return Forked(["-c", script], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def nodes(prefix: str, n: int) -> list[Node]:
    return [Node(f"{prefix}/{i}", "tool", prefix, f"text of {prefix} {i}", "") for i in range(n)]


def index(where: str | Path | None, embeddings: Embeddings, catalog: str = "c", recipe: str = "r1") -> ChromaIndex:
    return ChromaIndex(embeddings, catalog=catalog, recipe=recipe, where=where)


def best(made: ChromaIndex, text: str) -> int:
    """The row of the most similar node."""
    return int(made.scores(text)[0].argmax())
