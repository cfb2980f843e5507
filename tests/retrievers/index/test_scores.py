"""What a Chroma index answers: cosines of every node, to a query and to its parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from callsheet.graphs import SettingsError
from callsheet.retrievers import Changes, Node
from callsheet.retrievers.index import indexes
from callsheet.retrievers.index.indexes import PartOfIndex
from counting import index, nodes

EMBEDDER = DeterministicFakeEmbedding(size=16)


def cosine(one: str, other: str) -> float:
    a, b = (np.array(EMBEDDER.embed_query(text)) for text in (one, other))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_scores_are_cosines_in_the_order_of_the_nodes() -> None:
    made = index(None, EMBEDDER)
    made.sync(nodes("a", 5)[::-1])
    scores = made.scores("text of a 3")
    assert (scores.shape, scores.dtype) == ((1, 5), np.float32)
    assert scores[0] == pytest.approx([cosine("text of a 3", f"text of a {i}") for i in (4, 3, 2, 1, 0)], abs=1e-5)
    assert scores[0][1] == pytest.approx(1.0, abs=1e-5)


def test_each_part_of_a_query_has_scores_of_its_own() -> None:
    made = index(None, EMBEDDER)
    made.sync(nodes("a", 3))
    scores = made.scores("text of a 1 text of a 2", [(0, 11), (12, 23)])
    assert scores.shape == (3, 3)
    assert scores[1:] == pytest.approx(np.concatenate([made.scores(f"text of a {i}") for i in (1, 2)]), abs=1e-5)
    assert scores[1:].argmax(axis=1).tolist() == [1, 2]


def test_views_count_with_their_weights_beside_the_text() -> None:
    made = index(None, EMBEDDER)
    views = (("one", 0.2), ("two", 0.3))
    made.sync([Node("a/x", "tool", "a", "text", "", views), Node("a/y", "tool", "a", "text", "")])
    by_hand = 0.5 * cosine("q", "text") + 0.2 * cosine("q", "one") + 0.3 * cosine("q", "two")
    assert made.scores("q")[0] == pytest.approx([by_hand, cosine("q", "text")], abs=1e-5)


def test_changed_views_of_a_node_update_its_row(tmp_path: Path) -> None:
    one, other = (Node("a/x", "tool", "a", "text", "", ((view, 0.2),)) for view in ("one", "other"))
    assert index(tmp_path, EMBEDDER).sync([one]) == Changes(added=1)
    made, fresh = index(tmp_path, EMBEDDER), index(None, EMBEDDER)
    assert made.sync([other]) == Changes(updated=1)
    fresh.sync([other])
    assert made.scores("q") == pytest.approx(fresh.scores("q"), abs=1e-5)


def test_vectors_of_other_dimensions_are_named() -> None:
    made = index(None, EMBEDDER)
    made.sync(nodes("a", 3))
    made.embeddings = DeterministicFakeEmbedding(size=24)
    with pytest.raises(SettingsError, match=r"has vectors of 16 dimensions, but .+ made one of 24"):
        made.scores("q")


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but 50 nodes are too many to be compared in memory, and a search returns 10."""
    monkeypatch.setattr(indexes, "EXACT", 50)
    monkeypatch.setattr(indexes, "_HITS", 10)


@pytest.mark.usefixtures("searched")
def test_chroma_finds_the_best_of_many_nodes_and_the_others_get_the_lowest_score(tmp_path: Path) -> None:
    many, exact, made = nodes("a", 120), index(None, EMBEDDER), index(tmp_path, EMBEDDER)
    exact.sync(many)
    assert made.sync(many) == Changes(added=120)
    assert not [*tmp_path.glob("*.vectors")]
    query, spans = "text of a 7; text of a 9", [(0, 11), (13, 24)]
    expected, found = exact.scores(query, spans), made.scores(query, spans)
    assert found.shape == (3, 120)
    for true, score in zip(expected, found, strict=True):
        best = np.argsort(-true)[:10]
        assert score[best] == pytest.approx(true[best], abs=1e-5)
        assert set(score[np.setdiff1d(np.arange(120), best)]) == {score.min()}
    products = made.products(np.ones((2, 16), np.float32))
    assert products == pytest.approx(exact.products(np.ones((2, 16), np.float32)), abs=1e-5)


@pytest.mark.usefixtures("searched")
def test_a_small_part_of_many_nodes_is_compared_in_memory(tmp_path: Path) -> None:
    many, made = nodes("a", 120), index(tmp_path, EMBEDDER)
    made.sync(many)
    rows = [*range(100, 60, -1)]
    exact = index(None, EMBEDDER)
    exact.sync([many[row] for row in rows])
    assert PartOfIndex(made, rows).scores("q") == pytest.approx(exact.scores("q"), abs=1e-5)
    large = PartOfIndex(made, range(100))
    assert np.array_equal(large.scores("q"), made.scores("q")[:, :100])


@pytest.mark.usefixtures("searched")
def test_an_index_that_grows_beyond_memory_and_shrinks_again_finds_the_same(tmp_path: Path) -> None:
    made = index(tmp_path, EMBEDDER)
    for count in (20, 120, 20):
        made.sync(nodes("a", count))
        assert made.scores(f"text of a {count - 1}")[0].argmax() == count - 1
    assert made.sync(nodes("a", 20)) == Changes()
