"""The arithmetic of words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from callsheet.retrievers.inference.endpoints import Postings, Terms


def test_rare_words_weigh_more_and_generic_ones_less() -> None:
    terms = Terms([{"city", "code"}, {"city"}, {"user", "id"}])
    assert terms.weight("user") == pytest.approx(math.log1p((3 - 1 + 0.5) / (1 + 0.5)))
    assert terms.weight("city") == pytest.approx(math.log1p((3 - 2 + 0.5) / (2 + 0.5)))
    assert terms.weight("id") == pytest.approx(0.35 * terms.weight("user"))


def test_what_is_missing_counts_whole_and_what_is_too_much_a_part() -> None:
    terms = Terms([{"red"}, {"green"}, {"blue"}])
    one = terms.weight("red") ** 2
    postings = Postings([frozenset({"red", "green"}), frozenset({"red"}), frozenset({"blue"}), frozenset()], terms)
    fit = postings.fit(frozenset({"red", "green"}))
    assert fit == pytest.approx([1.0, one / (one + one), 0.0, 0.0])
    assert postings.fit(frozenset({"red"})) == pytest.approx([one / (one + 0.4 * one), 1.0, 0.0, 0.0])
    assert postings.cosine(frozenset({"red"})) == pytest.approx([1 / math.sqrt(2), 1.0, 0.0, 0.0])


def test_nothing_is_like_nothing() -> None:
    postings = Postings([frozenset()], Terms([]))
    assert np.array_equal(postings.fit(frozenset()), [0.0])
    assert np.array_equal(postings.cosine(frozenset({"x"})), [0.0])
    assert len(Postings([], Terms([])).fit(frozenset({"x"}))) == 0
