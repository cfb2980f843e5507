"""The arithmetic of joining rankings, by hand."""

from __future__ import annotations

from hypothesis import given, strategies as st

from callsheet.retrievers import RankedNode, reciprocal_rank_fusion, weighted_rrf

WEIGHTS = {"A": 1.5, "t": 1.0}


def alpha(node: str) -> float:
    return WEIGHTS[node[0]]


def ids(hits: list[RankedNode]) -> str:
    return " ".join(hit.id for hit in hits)


nodes = st.lists(st.builds(lambda kind, n: f"{kind}{n}", st.sampled_from("At"), st.integers(0, 99)), unique=True)


def test_the_rank_is_that_in_the_merged_list_not_within_a_type() -> None:
    scores = {hit.id: hit.score for hit in weighted_rrf(["t1", "t2", "t3", "A1"], alpha)}
    assert scores["A1"] == 1.5 / (60 + 4)
    assert scores["t1"] == 1.0 / (60 + 1)
    assert scores["t3"] == 1.0 / (60 + 3)


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


def test_reciprocal_rank_fusion_adds_over_rankings() -> None:
    fused = reciprocal_rank_fusion([["a", "b"], ["b", "c", "a"]])
    assert ids(fused) == "b a c"
    assert [hit.score for hit in fused] == [1 / 62 + 1 / 61, 1 / 61 + 1 / 63, 1 / 62]


def test_reciprocal_rank_fusion_breaks_ties_by_first_appearance() -> None:
    assert ids(reciprocal_rank_fusion([["b"], ["a"]], k=1)) == "b a"
    assert reciprocal_rank_fusion([]) == []
