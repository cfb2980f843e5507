from __future__ import annotations

import numpy as np
import pytest

from callsheet.retrievers.index import matrix
from callsheet.retrievers.index.matrix import Matrix, among_best


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
