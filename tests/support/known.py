"""What tools and requests are about, as a test wrote it down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from callsheet.graphs import Capability, Catalog, Taxonomy
from callsheet.retrievers import LexicalIndex, Selector, nodes_of
from callsheet.retrievers.capabilities import CapabilityIndex
from callsheet.retrievers.index.node_texts import Span
from scripted import Scripted

Written = Mapping[str, Mapping[str, float]]


class WordVectors(Embeddings):
    """A text as the words that it holds, of these; unit length, and nothing where it holds none."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def embed_query(self, text: str) -> list[float]:
        found = np.array([float(word in text.lower()) for word in self.words])
        scaled: list[float] = (found / max(float(np.linalg.norm(found)), 1.0)).tolist()
        return scaled

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def capability(name: str, broader: str | None = None, *words: str, says: Sequence[str] = ()) -> Capability:
    phrases = tuple(says) or (f"{name} one", f"{name} two", f"{name} three")
    return Capability(
        id=name, name=name, broader=broader, definition=phrases[0], examples=tuple(phrases[1:]), words=words
    )


def taxonomy_of(*leaves: str) -> Taxonomy:
    """These leaves, each under ``do`` under ``all``."""
    return Taxonomy(
        capabilities=(capability("all"), capability("do", "all"), *(capability(leaf, "do") for leaf in leaves))
    )


class Known(CapabilityIndex):
    """Tool id -> capability -> confidence, and text of a request -> capability -> confidence.

    The taxonomy has these leaves, or is a given one.
    """

    def __init__(
        self, catalog: Catalog, tools: Written, requests: Written, *leaves: str, taxonomy: Taxonomy | None = None
    ) -> None:
        nodes = [node.id for node in nodes_of(catalog)]
        super().__init__(
            catalog, Scripted([], {}, {}), nodes, taxonomy or taxonomy_of(*leaves), embeddings=WordVectors()
        )
        rows = [self.vector(tools.get(node, {})) for node in nodes]
        self.__dict__["of_tools"] = np.array(rows, np.float32).reshape(len(nodes), len(self.leaves))
        self.__dict__["general_index"] = self  # its taxonomy has all capabilities that a test knows
        self.requests = requests

    def asked(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        texts = (query, *(query[start:end] for start, end in spans))
        return np.stack([self.vector(self.requests.get(text, {})) for text in texts])


def knowing_selector(catalog: Catalog, scores: Mapping[str, float], known: CapabilityIndex) -> Selector:
    """A selector over scores and capabilities that a test wrote down; no words are searched."""
    nodes = nodes_of(catalog)
    silent = [type(node)(node.id, node.kind, node.owner, node.text, "") for node in nodes]
    return Selector(catalog, Scripted(nodes, scores, {}), LexicalIndex(silent), nodes=silent, capabilities=known)
