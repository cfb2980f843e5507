"""The learned model of dependencies: its figures, and that the package has the weights of its training."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.measurements.dependencies import PAIRS, counts, figures, train
from callsheet.retrievers.inference.edge_model import NEED, PAIR, edge_model


def test_precision_recall_and_f1_are_ratios_of_sums() -> None:
    precision, recall, f1 = figures([(2, 4, 2), (1, 1, 4), (0, 0, 0)])
    assert precision.mean == 3 / 5
    assert recall.mean == 3 / 6
    assert f1.mean == pytest.approx(2 * 0.6 * 0.5 / 1.1)
    assert precision.low <= precision.mean <= precision.high


def test_the_weights_are_those_of_the_training() -> None:
    data = np.load(PAIRS)
    (*found, bias), _ = train(data, data["set"] >= 0)
    model, dense = edge_model(), len(NEED) + len(PAIR)
    assert [*model.of_need, *model.of_pair] == pytest.approx(found[:dense], abs=2e-3)
    assert model.bias == pytest.approx(bias, abs=2e-3)


@pytest.mark.exhaustive
def test_the_training_holds_for_a_set_that_is_left_out() -> None:
    data = np.load(PAIRS)
    number = data["sets"].tolist().index("tmdb")
    assert figures(counts(data, number, train(data, data["set"] != number)))[2].mean >= 0.35
