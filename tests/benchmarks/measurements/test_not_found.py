"""The figures of *not-found*, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.measurements.not_found import Tried, figures, tried
from benchmarks.sets.reading import hotpotqa, hotpotqa_without_support
from callsheet.retrievers.documents import Rules


def test_figures_of_four_questions() -> None:
    there = [Tried(1.0, True), Tried(0.9, True), Tried(0.5, False), Tried(0.0, False)]
    away = [Tried(0.9, True), Tried(0.4, False), Tried(0.4, False), Tried(0.0, False)]
    found = figures(there, away)
    assert found["answered_there"]["mean"] == 2 / 4  # type: ignore[index]
    assert found["answered_away"]["mean"] == 1 / 4  # type: ignore[index]
    assert found["precision"]["mean"] == pytest.approx(2 / 3)  # type: ignore[index]
    assert found["auroc"]["mean"] == pytest.approx((4 + 3.5 + 3 + 0.5) / 16)  # type: ignore[index]


def test_the_supporting_paragraphs_are_taken_out(tmp_path: Path) -> None:
    asked = {
        "question": "Who signs requests for leave?",
        "supporting_facts": [["Leave", 0]],
        "context": [["Leave", ["Anna Berg signs requests for leave."]], ["Trains", ["Trains are booked in May."]]],
    }
    (tmp_path / "hotpotqa").mkdir()
    (tmp_path / "hotpotqa" / "distractor_sample_100.json").write_text(json.dumps([asked]))
    with hotpotqa(tmp_path) as whole, hotpotqa_without_support(tmp_path) as rest:
        (question,) = whole.questions
        assert (len(whole.index.lexicon.ids), len(rest.index.lexicon.ids)) == (2, 1)
        assert tried(question.text, whole.index, Rules()) == Tried(1.0, True)
        assert tried(question.text, rest.index, Rules()) == Tried(0.0, False)
