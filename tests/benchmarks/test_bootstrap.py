"""Intervals and folds by group, the same every time."""

from __future__ import annotations

import pytest

from benchmarks.bootstrap import Bootstrap, cross_validated, folds

GROUPS = ["a", "a", "b", "c", "c", "c", "d", "e", "f"]


def test_groups_are_drawn_whole() -> None:
    # two groups, one all right and one all wrong: a resample's mean is one of 0, 1/2, 1
    values = [1.0] * 50 + [0.0] * 50
    found = Bootstrap(["a"] * 50 + ["b"] * 50).mean(values)
    assert found == (0.5, 0.0, 1.0) == Bootstrap(["a"] * 50 + ["b"] * 50).mean(values)


def test_differences_are_paired() -> None:
    better = [0.9, 0.1, 0.6, 0.7, 0.2, 0.3, 0.8, 0.4, 0.5]
    found = Bootstrap(GROUPS).difference(better, [value - 0.1 for value in better])
    assert [found.mean, found.low, found.high] == pytest.approx([0.1] * 3)


def test_folds_cover_everything_once_and_cut_no_group() -> None:
    parts = folds(GROUPS)
    assert sorted(place for part in parts for place in part) == list(range(len(GROUPS)))
    assert len(parts) == 5
    held = [{GROUPS[place] for place in part} for part in parts]
    assert sum(map(len, held)) == len(set(GROUPS))
    assert folds(GROUPS) == parts
    assert len(folds(["a", "a", "b"])) == 2


def test_a_choice_is_never_made_on_the_fold_that_it_is_scored_on() -> None:
    seen: list[set[str]] = []

    def fit(places: list[int] | tuple[int, ...]) -> set[str]:
        seen.append({GROUPS[place] for place in places})
        return seen[-1]

    chosen, choices = cross_validated(GROUPS, fit)  # type: ignore[arg-type]
    assert not [group for group, known in zip(GROUPS, chosen, strict=True) if group in known]
    assert choices == seen


def test_auroc_counts_pairs_and_half_of_the_ties() -> None:
    # 2 beats 1 and 0, 1 ties with 1 and beats 0: (1 + 1 + .5 + 1) / 4
    found = Bootstrap(["a", "b"]).auroc([2.0, 1.0], [1.0, 0.0])
    assert found.mean == pytest.approx(3.5 / 4)
    # a resample of one group alone: 2 over 1, or 1 over 0
    assert found.low <= found.mean <= found.high == 1.0
