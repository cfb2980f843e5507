"""Vectors of queries are remembered, a bounded number of them, for each embedder."""

from __future__ import annotations

import numpy as np
import pytest

from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.index.embedding import providers
from callsheet.retrievers.index.embedding.providers import encode_spans
from counting import Counting


class Asked(Counting):
    """Counts queries too."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return super().embed_query(text)


def test_the_same_query_and_parts_are_embedded_once() -> None:
    first, second = Asked(), Asked()
    before = encode_spans(first, "rain in Oslo", [(0, 4)])
    assert encode_spans(first, "rain in Oslo", [(0, 4)]) is before
    assert first.queries == ["rain in Oslo", "rain"]
    encode_spans(first, "rain in Oslo", [(8, 12)])
    assert first.queries[2:] == ["rain in Oslo", "Oslo"]
    assert np.allclose(encode_spans(second, "rain in Oslo", [(0, 4)]), before)
    assert second.queries == ["rain in Oslo", "rain"]
    with pytest.raises(ValueError, match="read-only"):
        before[0, 0] = 1


def test_only_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_MOST", 3)
    monkeypatch.setattr(providers, "_LATEST", type(providers._LATEST)())
    embedder = Asked()
    for query in ("a", "b", "c", "a", "d", "a", "b"):
        encode_spans(embedder, query)
    assert embedder.queries == ["a", "b", "c", "d", "b"]
    assert len(providers._LATEST) == 3


def test_a_selection_embeds_its_query_once_and_a_repeated_one_not_at_all(catalog: Catalog) -> None:
    embedder = Asked()
    retriever = AgentGraphRetriever.from_catalog(catalog, embeddings=embedder, index=":memory:")
    embedder.queries.clear()
    first = retriever.select("Will it rain in Oslo?")
    asked = [*embedder.queries]
    assert asked.count("Will it rain in Oslo?") == 1
    assert retriever.select("Will it rain in Oslo?").tools == first.tools
    assert embedder.queries == asked
