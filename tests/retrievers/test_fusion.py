"""The arithmetic of joining rankings, by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callsheet.retrievers import Hit, blend, log_sum_exp, reciprocal_rank_fusion, weighted_rrf

WEIGHTS = {"A": 1.5, "t": 1.0}


def alpha(node: str) -> float:
    return WEIGHTS[node[0]]


def ids(hits: list[Hit]) -> str:
    return " ".join(hit.id for hit in hits)


nodes = st.lists(st.builds(lambda kind, n: f"{kind}{n}", st.sampled_from("At"), st.integers(0, 99)), unique=True)


def test_the_rank_is_that_in_the_merged_list_not_within_a_type() -> None:
    scores = {hit.id: hit.score for hit in weighted_rrf(["t1", "t2", "t3", "A1"], alpha)}
    assert scores["A1"] == 1.5 / (60 + 4)
    assert scores["t1"] == 1.0 / (60 + 1)
    assert scores["t3"] == 1.0 / (60 + 3)


def test_weighted_rrf_orders_by_those_scores() -> None:
    assert ids(weighted_rrf(["t1", "t2", "t3", "A1"], alpha)) == "A1 t1 t2 t3"
    assert ids(weighted_rrf(["t1", "t2", "t3", "A1"], alpha, k=1)) == "t1 t2 A1 t3"
    assert 1.0 / (1 + 2) > 1.5 / (1 + 4) > 1.0 / (1 + 3)


@given(st.integers(1, 500), st.integers(1, 500))
def test_with_the_papers_numbers_an_agent_beats_a_tool_when_r_a_is_less_than_30_and_a_half_more_r_t(
    agent_rank: int, tool_rank: int
) -> None:
    if agent_rank == tool_rank:
        return
    merged = [f"t{i + 100}" for i in range(500)]
    merged[agent_rank - 1], merged[tool_rank - 1] = "A", "t"
    order = [hit.id for hit in weighted_rrf(merged, alpha)]
    margin = 30 + 1.5 * tool_rank - agent_rank
    if margin:
        assert (order.index("A") < order.index("t")) == (margin > 0)


@given(nodes, st.integers(1, 100))
def test_equal_weights_keep_the_order_of_the_merged_list(merged: list[str], k: int) -> None:
    assert [hit.id for hit in weighted_rrf(merged, lambda _: 2.0, k=k)] == merged


@given(nodes)
def test_a_node_below_all_others_never_changes_their_order(merged: list[str]) -> None:
    before = [hit.id for hit in weighted_rrf(merged, alpha)]
    after = [hit.id for hit in weighted_rrf([*merged, "A-new"], alpha)]
    assert [node for node in after if node != "A-new"] == before


def test_reciprocal_rank_fusion_adds_over_rankings() -> None:
    fused = reciprocal_rank_fusion([["a", "b"], ["b", "c", "a"]])
    assert ids(fused) == "b a c"
    assert [hit.score for hit in fused] == [1 / 62 + 1 / 61, 1 / 61 + 1 / 63, 1 / 62]


def test_reciprocal_rank_fusion_breaks_ties_by_first_appearance() -> None:
    assert ids(reciprocal_rank_fusion([["b"], ["a"]], k=1)) == "b a"
    assert reciprocal_rank_fusion([]) == []


@given(st.lists(nodes, max_size=3))
def test_reciprocal_rank_fusion_holds_every_node_once(rankings: list[list[str]]) -> None:
    fused = [hit.id for hit in reciprocal_rank_fusion(rankings)]
    assert sorted(fused) == sorted(set().union(*rankings))


def test_blend_adds_to_the_cosine_what_the_words_are_worth() -> None:
    dense = [Hit("a", 0.6), Hit("b", 0.5), Hit("c", 0.2)]
    lexical = [Hit("b", 8.0), Hit("d", 2.0)]
    blended = {hit.id: hit.score for hit in blend(dense, lexical, weight=0.4, coverage=0.25)}
    assert blended == pytest.approx({"a": 0.6, "b": 0.5 + 0.4 * 0.5 * 8 / 8, "c": 0.2, "d": 0.2 + 0.4 * 0.5 * 2 / 8})
    assert ids(blend(dense, lexical, weight=0.4, coverage=0.25)) == "b a d c"


@pytest.mark.parametrize(("weight", "coverage"), [(0.0, 1.0), (0.4, 0.0)])
def test_blend_without_weight_or_coverage_is_the_cosine(weight: float, coverage: float) -> None:
    dense = [Hit("a", 0.6), Hit("b", 0.5)]
    assert blend(dense, [Hit("b", 9.0)], weight=weight, coverage=coverage) == dense


def test_blend_of_one_search_or_none() -> None:
    assert blend([], [], weight=0.4, coverage=0) == []
    assert blend([], [Hit("a", 2.0), Hit("b", 1.0)], weight=0.5, coverage=1.0) == [Hit("a", 0.5), Hit("b", 0.25)]


def test_log_sum_exp_by_hand() -> None:
    assert log_sum_exp([0.5], sharpness=20) == 0.5
    assert log_sum_exp([0.5, 0.5], sharpness=20) == pytest.approx(0.5 + math.log(2) / 20)
    assert log_sum_exp([0.5, 0.4], sharpness=20) == pytest.approx(math.log(math.exp(10) + math.exp(8)) / 20)


def test_log_sum_exp_of_nothing_and_of_huge_values() -> None:
    assert log_sum_exp([], sharpness=20) == -math.inf
    assert log_sum_exp([1e6, 1e6], sharpness=20) == pytest.approx(1e6 + math.log(2) / 20)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_log_sum_exp_is_between_the_maximum_and_a_little_more(scores: list[float]) -> None:
    smooth = log_sum_exp(scores, sharpness=20)
    assert max(scores) <= smooth <= max(scores) + math.log(len(scores)) / 20 + 1e-9
