"""What a Chroma index answers: cosines of every node, to a query and to its parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from callsheet.graphs import SettingsError
from callsheet.retrievers import Changes, ChromaIndex, MiniLMEmbeddings, Node
from callsheet.retrievers.index import rows as matrix
from callsheet.retrievers.index.rows import Matrix, among_best

EMBEDDER = DeterministicFakeEmbedding(size=16)


def nodes(prefix: str, n: int) -> list[Node]:
    return [Node(f"{prefix}/{i}", "tool", prefix, f"text of {prefix} {i}", "") for i in range(n)]


def index(where: Path | None, embeddings: Embeddings = EMBEDDER) -> ChromaIndex:
    return ChromaIndex(embeddings, catalog="c", recipe="r1", where=where)


def cosine(one: str, other: str) -> float:
    a, b = (np.array(EMBEDDER.embed_query(text)) for text in (one, other))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_scores_are_cosines_in_the_order_of_the_nodes() -> None:
    made = index(None)
    made.sync(nodes("a", 5)[::-1])
    scores = made.scores("text of a 3")
    assert (scores.shape, scores.dtype) == ((1, 5), np.float32)
    assert scores[0] == pytest.approx([cosine("text of a 3", f"text of a {i}") for i in (4, 3, 2, 1, 0)], abs=1e-5)
    assert scores[0][1] == pytest.approx(1.0, abs=1e-5)


def test_each_part_of_a_query_has_scores_of_its_own() -> None:
    made = index(None)
    made.sync(nodes("a", 3))
    scores = made.scores("text of a 1 text of a 2", [(0, 11), (12, 23)])
    assert scores.shape == (3, 3)
    assert scores[1:] == pytest.approx(np.concatenate([made.scores(f"text of a {i}") for i in (1, 2)]), abs=1e-5)
    assert scores[1:].argmax(axis=1).tolist() == [1, 2]


def test_the_embedded_model_reads_the_parts_within_their_query(minilm: MiniLMEmbeddings) -> None:
    made = index(None, minilm)
    made.sync(nodes("a", 3))
    query, spans = "weather forecast; tax return", [(0, 16), (18, 28)]
    expected = minilm.encode_spans(query, spans) @ minilm.encode([node.text for node in nodes("a", 3)]).T
    assert made.scores(query, spans) == pytest.approx(expected, abs=1e-5)


def test_views_count_with_their_weights_beside_the_text() -> None:
    made = index(None)
    views = (("one", 0.2), ("two", 0.3))
    made.sync([Node("a/x", "tool", "a", "text", "", views), Node("a/y", "tool", "a", "text", "")])
    by_hand = 0.5 * cosine("q", "text") + 0.2 * cosine("q", "one") + 0.3 * cosine("q", "two")
    assert made.scores("q")[0] == pytest.approx([by_hand, cosine("q", "text")], abs=1e-5)


def test_other_views_are_another_row(tmp_path: Path) -> None:
    one, other = (Node("a/x", "tool", "a", "text", "", ((view, 0.2),)) for view in ("one", "other"))
    assert index(tmp_path).sync([one]) == Changes(added=1)
    made, fresh = index(tmp_path), index(None)
    assert made.sync([other]) == Changes(updated=1)
    fresh.sync([other])
    assert made.scores("q") == pytest.approx(fresh.scores("q"), abs=1e-5)


def test_equal_texts_have_equal_scores() -> None:
    made = index(None)
    made.sync([Node(name, "tool", "a", "the same text", "") for name in ("z", "a", "m")])
    assert len(set(made.scores("anything")[0].tolist())) == 1


def test_products_are_the_scores_of_the_same_vectors() -> None:
    made = index(None)
    assert made.products(np.ones((2, 16), np.float32)).shape == (2, 0)
    made.sync(nodes("a", 3))
    texts = ["one", "other"]
    products = made.products(np.array([EMBEDDER.embed_query(t) for t in texts], np.float32))
    lengths = [float(np.linalg.norm(EMBEDDER.embed_query(text))) for text in texts]
    for row, length, text in zip(products, lengths, texts, strict=True):
        assert np.allclose(row / length, made.scores(text)[0], atol=1e-5)


def test_vectors_of_other_dimensions_are_named() -> None:
    made = index(None)
    made.sync(nodes("a", 3))
    made.embeddings = DeterministicFakeEmbedding(size=24)
    with pytest.raises(SettingsError, match=r"has vectors of 16 dimensions, but .+ made one of 24"):
        made.scores("q")


def rows_of(n: int, dimensions: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=(n, dimensions)).astype(np.float32)


def test_products_of_few_rows_are_exact() -> None:
    rows, queries = rows_of(50, 16), rows_of(3, 16)
    found = Matrix(rows).products(queries)
    assert (found.shape, found.dtype) == ((3, 50), np.float32)
    assert found == pytest.approx(queries @ rows.T, abs=1e-5)


def test_of_many_rows_the_best_are_exact_and_the_others_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LARGE": 100, "_DIRECTIONS": 12, "_EXACT": 40}.items():
        monkeypatch.setattr(matrix, name, value)
    rows = rows_of(300, 16) * np.linspace(0.01, 1, 16, dtype=np.float32)
    queries = rows[[5, 250]]
    exact, found = queries @ rows.T, Matrix(rows).products(queries)
    assert found.shape == exact.shape
    for true, estimate in zip(exact, found, strict=True):
        best = np.argsort(-true)[:10]
        assert estimate[best] == pytest.approx(true[best], abs=1e-5)
        assert np.argsort(-estimate)[:10].tolist() == best.tolist()
        assert np.sum(np.abs(estimate - true) < 1e-5) >= 40
        assert np.abs(estimate - true).max() < 0.5


def test_many_rows_of_few_dimensions_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "LARGE", 10)
    rows, queries = rows_of(50, 16), rows_of(2, 16)
    assert Matrix(rows).products(queries) == pytest.approx(queries @ rows.T, abs=1e-5)


def test_of_many_rows_in_half_precision_nearly_all_of_the_exact_best_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "LARGE", 1_000)
    subjects, draw = rows_of(200, 96), np.random.default_rng(8)
    rows = draw.dirichlet([0.05] * 200, 5_000).astype(np.float32) @ subjects + 0.3 * rows_of(5_000, 96)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    half = rows.astype(matrix.precision(len(rows)))
    assert half.dtype == np.float16
    queries = rows[draw.choice(5_000, 20)] + 0.1 * rows_of(20, 96)
    exact, found = queries @ rows.T, Matrix(half).products(queries)
    recall = [
        len({*np.argsort(-true)[:30].tolist()} & {*np.argsort(-other)[:30].tolist()}) / 30
        for true, other in zip(exact, found, strict=True)
    ]
    assert np.mean(recall) >= 0.97


@pytest.mark.parametrize(
    ("count", "most", "taken"), [(900, 1_000, 900), (55_000, 1_000, 1_000), (110_000, 1_000, 1_700)]
)
def test_among_the_best_are_all_of_the_best_and_few_others(count: int, most: int, taken: int) -> None:
    values = np.random.default_rng(3).standard_normal(count, np.float32)
    rows = among_best(values, most)
    assert set(np.argsort(-values)[:most]) <= set(rows.tolist())
    assert len(rows) <= taken
    assert list(rows) == sorted(rows)
