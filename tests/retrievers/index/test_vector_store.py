from __future__ import annotations

import sys
from types import ModuleType

import pytest
from langchain_core.vectorstores import InMemoryVectorStore

from callsheet.graphs import Catalog, SettingsError
from callsheet.retrievers import AgentGraphRetriever, Changes, MiniLMEmbeddings, Node, VectorStoreIndex
from callsheet.retrievers.index import indexes


def node(name: str, text: str) -> Node:
    return Node(name, "tool", "a", text, "")


@pytest.fixture
def made(minilm: MiniLMEmbeddings) -> VectorStoreIndex:
    return VectorStoreIndex(InMemoryVectorStore(minilm))


def test_scores_are_cosines_in_the_order_of_the_nodes(made: VectorStoreIndex) -> None:
    made.sync([node("a/x", "weather forecast"), node("a/y", "tax return")])
    ((near, far),) = made.scores("weather forecast")
    assert near == pytest.approx(1.0, abs=1e-4)
    assert near > far + 0.2


def test_a_second_sync_changes_only_what_changed(made: VectorStoreIndex) -> None:
    assert made.sync([node("a/x", "one"), node("a/y", "two"), node("a/z", "three")]) == Changes(added=3)
    assert made.sync([node("a/x", "one"), node("a/y", "rain"), node("a/w", "four")]) == Changes(1, 1, 1)
    assert made.scores("rain").shape == (1, 3)
    assert made.scores("rain").argmax() == 1
    assert made.scores("four").argmax() == 2
    assert made.sync([]) == Changes(removed=3)
    assert made.scores("rain", [(0, 2)]).shape == (2, 0)


def test_each_part_of_a_query_has_scores_of_its_own(made: VectorStoreIndex) -> None:
    made.sync([node("a/x", "weather forecast"), node("a/y", "tax return")])
    query = "weather forecast; tax return"
    scores = made.scores(query, [(0, 16), (18, 28)])
    assert scores.shape == (3, 2)
    assert scores[1] == pytest.approx(made.scores("weather forecast")[0])
    assert scores[2].argmax() == 1


def test_nodes_that_the_store_did_not_compare_get_the_lowest_score_found(
    made: VectorStoreIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "_HITS", 2)
    made.sync([node("a/x", "tax return"), node("a/y", "weather forecast"), node("a/z", "weather")])
    ((far, nearest, near),) = made.scores("weather forecast")
    assert nearest > near == far


def test_a_node_that_is_only_in_the_store_is_ignored(minilm: MiniLMEmbeddings) -> None:
    store = InMemoryVectorStore(minilm)
    VectorStoreIndex(store).sync([node("gone/x", "weather forecast"), node("a/x", "weather"), node("a/y", "rain")])
    made = VectorStoreIndex(store)
    assert made.sync([node("a/x", "weather"), node("a/y", "another text")]) == Changes(added=1)
    assert made.scores("weather")[0, 0] == pytest.approx(1.0, abs=1e-4)
    assert made.scores("rain")[0, 1] < 0.9  # the text of before


def test_the_retriever_takes_a_store_or_the_name_of_one(
    catalog: Catalog, minilm: MiniLMEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = InMemoryVectorStore(minilm)
    module = ModuleType("my_index")
    module.store = store  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_index", module)
    first, second = (AgentGraphRetriever.from_catalog(catalog, k=1, index=index) for index in (store, "my_index:store"))
    assert (first.changes.added, second.changes.added) == (len(catalog.tools) + len(catalog.agents), 0)
    for wrong in ("my_index:nothing", "no_such_module:store"):
        with pytest.raises(SettingsError, match=f"the index {wrong} cannot be imported"):
            AgentGraphRetriever.from_catalog(catalog, index=wrong)
    with pytest.raises(SettingsError, match="a VectorStore of LangChain, not int"):
        AgentGraphRetriever.from_catalog(catalog, index=5)  # type: ignore[arg-type]


def test_vectors_in_postgres(catalog: Catalog, postgres: str, minilm: MiniLMEmbeddings) -> None:
    """As docs/how-to/deploy.md says: two processes share the vectors, of which the first one embeds all."""
    from langchain_postgres import PGEngine, PGVectorStore

    engine = PGEngine.from_connection_string(postgres.replace("postgresql://", "postgresql+psycopg://"))
    engine.init_vectorstore_table("tools", vector_size=384, overwrite_existing=True)
    stores = [PGVectorStore.create_sync(engine, minilm, "tools") for _ in range(2)]
    first, second = (AgentGraphRetriever.from_catalog(catalog, k=1, index=store) for store in stores)
    assert (first.changes.added, second.changes.added) == (len(catalog.tools) + len(catalog.agents), 0)
    in_memory = AgentGraphRetriever.from_catalog(catalog, k=1, index=":memory:", embeddings=minilm)
    for query in ("Convert 3 miles to kilometres", "Will it rain in Oslo?"):
        ids = [document.id for document in in_memory.invoke(query)]
        assert [document.id for document in second.invoke(query)] == ids
    index = VectorStoreIndex(stores[0])
    index.sync([node("a/x", "weather forecast"), node("a/y", "tax return")])
    assert index.scores("weather forecast")[0, 0] == pytest.approx(1.0, abs=1e-3)
    assert index.sync([node("a/y", "tax return")]) == Changes(removed=1)
    assert VectorStoreIndex(stores[1]).sync([node("a/x", "weather forecast")]) == Changes(added=1)
