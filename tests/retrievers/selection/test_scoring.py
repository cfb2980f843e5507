"""The arithmetic of the ranking, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from callsheet.retrievers import agent_scores, expected_use, node_scores, share
from callsheet.retrievers.selection.scoring import (
    Rows,
    Scores,
    best_rows,
    fit_probability,
    general_weight,
    ranks_of,
    tool_probability,
)


def scores_of(*values: float) -> Scores:
    return np.array(values, np.float32)


def rows_of(*values: int) -> Rows:
    return np.array(values, np.intp)


NONE = scores_of()


def test_words_add_to_the_cosine_what_they_are_worth() -> None:
    # .4 * sqrt(.25) = .2 for the best match by words, a quarter of it for one of a quarter of its BM25
    found = node_scores(scores_of(0.6, 0.5, 0.2), scores_of(0, 8, 2), coverage=0.25, weight=0.4)
    assert found == pytest.approx([0.6, 0.7, 0.25])


@pytest.mark.parametrize(
    ("bm25", "coverage", "weight"), [((0, 9), 1.0, 0.0), ((0, 9), 0.0, 0.4), ((0, 0), 1.0, 0.4), ((0, 0), 0.0, 0.4)]
)
def test_without_weight_coverage_or_words_the_cosine_is_left(
    bm25: tuple[float, float], coverage: float, weight: float
) -> None:
    cosines = scores_of(0.6, 0.5)
    assert node_scores(cosines, scores_of(*bm25), coverage=coverage, weight=weight).tolist() == cosines.tolist()


def test_no_nodes_have_no_scores() -> None:
    assert node_scores(NONE, NONE, coverage=0.0, weight=0.4).shape == (0,)
    assert agent_scores(NONE, rows_of(), np.array([], bool)).shape == (0,)
    rows, parts = share(NONE, temperature=0.04, most=30)
    assert (rows.shape, parts.shape) == ((0,), (0,))
    assert expected_use([(rows, parts)], [1.0]) == ({}, {})
    assert expected_use([], []) == ({}, {})


AGENTS_FIRST = np.array([True, True, False, False, False])


def test_an_agents_score_is_the_smooth_maximum_of_its_tools_and_half_its_own() -> None:
    # agents a .2 and b .6; a has a tool of .8, b two of .7: log(2 exp(14)) / 20 = .7 + log(2) / 20
    found = agent_scores(scores_of(0.2, 0.6, 0.8, 0.7, 0.7), rows_of(0, 1, 0, 1, 1), AGENTS_FIRST)
    assert found == pytest.approx([0.8 + 0.5 * 0.2, 0.7 + math.log(2) / 20 + 0.5 * 0.6], abs=1e-6)
    assert found == pytest.approx([0.9, 1.034657], abs=1e-5)


def test_an_agent_without_tools_counts_with_the_lowest_score_of_all() -> None:
    # z has no tool: the lowest of all is -.1; where all are above 0 it is 0
    owners, kinds = rows_of(0, 1, 0), np.array([True, True, False])
    assert agent_scores(scores_of(0.2, 0.6, -0.1), owners, kinds) == pytest.approx([-0.1 + 0.1, -0.1 + 0.3], abs=1e-6)
    assert agent_scores(scores_of(0.2, 0.6, 0.5), owners, kinds) == pytest.approx([0.5 + 0.1, 0.0 + 0.3], abs=1e-6)


def test_shares_of_use_computed_by_hand() -> None:
    # exp(0) : exp(-1) : exp(-2) = 1 : .367879 : .135335, together 1.503215
    rows, parts = share(scores_of(0.3, 0.5, 0.4), temperature=0.1, most=3)
    assert rows.tolist() == [1, 2, 0]
    assert parts == pytest.approx([0.665241, 0.244728, 0.090031], abs=1e-5)


def test_a_tool_is_used_unless_no_clause_dependency_or_implied_step_uses_it() -> None:
    query = rows_of(0, 1), scores_of(0.75, 0.25)
    clause = rows_of(1, 2), scores_of(0.5, 0.5)
    implied = rows_of(3), scores_of(1.0)
    closures = {0: {4: 0.5, 3: 0.25}, 2: {4: 1.0}}
    use, source = expected_use([query, clause, implied], [1.0, 1.0, 0.5], closures)
    assert use == pytest.approx(
        {
            0: 0.75,
            4: 1 - (1 - 0.75 * 0.5) * (1 - 0.5 * 1.0),  # what 0 and 2 need: .6875
            3: 1 - (1 - 0.75 * 0.25) * (1 - 0.5 * 1.0),  # what 0 needs, and the implied step: .59375
            1: 1 - (1 - 0.25) * (1 - 0.5),  # a candidate twice: .625
            2: 0.5,
        }
    )
    assert list(use) == [0, 4, 3, 1, 2]
    assert source == {0: 0, 4: 2, 3: 3, 1: 1, 2: 2}


def test_the_first_of_equal_givers_is_the_source_of_a_share() -> None:
    two = [(rows_of(0, 1), scores_of(0.5, 0.5))]
    assert expected_use(two, [1.0], {0: {2: 0.5}, 1: {2: 0.5}})[1] == {0: 0, 1: 1, 2: 0}
    assert expected_use(two, [1.0], {0: {2: 0.0}}) == ({0: 0.5, 2: 0.0, 1: 0.5}, {0: 0, 1: 1})


def test_the_best_rows_and_ranks_are_those_of_a_full_sort() -> None:
    for digits in (1, 7):
        for most in (0, 1, 3, 40):
            for count in (0, 1, 63, 64, 65, 700, 3_000):
                scores = np.random.default_rng(count).normal(size=count).round(digits).astype(np.float32)
                scores[: count // 2] = 0  # many without a word of the query
                values = scores.tolist()
                order = sorted(range(count), key=lambda row: (-values[row], row))
                assert best_rows(scores, most).tolist() == order[:most]
                some = rows_of(*order[:9], *order[-3:])
                assert ranks_of(scores, some) == [1 + sum(other > values[row] for other in values) for row in some]


def test_general_tools_weigh_less_the_better_a_tool_fits() -> None:
    # .2 / (1 + exp((s - .45) / .05)): half of .2 at .45, exp(-2) and exp(2) a tenth to either side
    assert general_weight(0.45, even=0.45) == pytest.approx(0.1)
    assert general_weight(0.35, even=0.45) == pytest.approx(0.2 / (1 + math.exp(-2)))
    assert general_weight(0.55, even=0.45) == pytest.approx(0.2 / (1 + math.exp(2)))
    assert general_weight(500.0, even=0.45) == pytest.approx(0.0)


def test_the_probability_of_fitting_is_computed_as_written() -> None:
    assert fit_probability(0.5) == pytest.approx(1 / (1 + math.exp(2.95 - 4.26 * 0.5)))
    assert tool_probability(0.8, 0.6) == pytest.approx(1 / (1 + math.exp(3.3 - 3 * 0.8 - 0.29 * math.log(0.6 / 0.4))))
    assert 0 < tool_probability(0.0, 0.0) < 0.01 < tool_probability(1.0, 1.0) < 1
    assert (fit_probability(-1e9), fit_probability(1e9)) == (pytest.approx(0), 1)
