from __future__ import annotations

import pytest
from langchain_core.vectorstores import InMemoryVectorStore

from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever, Changes, MiniLMEmbeddings, Node, VectorIndex, VectorStoreIndex


def node(name: str, text: str) -> Node:
    return Node(name, "tool", "a", text, "")


@pytest.fixture
def made(minilm: MiniLMEmbeddings) -> VectorStoreIndex:
    return VectorStoreIndex(InMemoryVectorStore(minilm))


def test_it_is_a_vector_index(made: VectorStoreIndex) -> None:
    assert isinstance(made, VectorIndex)


def test_the_nearest_come_first_with_their_cosines(made: VectorStoreIndex) -> None:
    made.sync([node("a/x", "weather forecast"), node("a/y", "tax return")])
    hits = made.search("weather forecast", 5)
    assert [hit.id for hit in hits] == ["a/x", "a/y"]
    assert hits[0].score == pytest.approx(1.0, abs=1e-4)
    assert len(made.search("weather", 1)) == 1
    assert list(made.search("weather", 0)) == []


def test_a_second_sync_changes_only_what_changed(made: VectorStoreIndex) -> None:
    assert made.sync([node("a/x", "one"), node("a/y", "two"), node("a/z", "three")]) == Changes(added=3)
    assert made.sync([node("a/x", "one"), node("a/y", "rain"), node("a/w", "four")]) == Changes(1, 1, 1)
    assert {hit.id for hit in made.search("rain", 9)} == {"a/x", "a/y", "a/w"}
    assert made.search("rain", 9)[0].id == "a/y"
    assert made.sync([]) == Changes(removed=3)
    assert list(made.search("rain", 9)) == []


def test_progress_is_told(made: VectorStoreIndex) -> None:
    told: list[tuple[int, int]] = []
    made.sync([node("a/x", "one")], lambda done, total: told.append((done, total)))
    assert told == [(1, 1)]


def test_the_retriever_works_over_it(catalog: Catalog, made: VectorStoreIndex) -> None:
    retriever = AgentGraphRetriever.from_catalog(catalog, k=1, index=made)
    assert [document.id for document in retriever.invoke("Convert 3 miles to kilometres")] == ["units"]
    assert retriever.place is None
