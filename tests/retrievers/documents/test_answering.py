"""What is quoted to a question, and that nothing is where nothing matches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callsheet.retrievers.documents import DocumentIndex, best_passages

Made = Callable[..., DocumentIndex]


def quoted(index: DocumentIndex, question: str) -> list[str]:
    return list(map(str, best_passages(question, index, index.lexicon.ids)))


def test_the_best_passages_have_their_headings_and_citations(made: Made) -> None:
    found = quoted(made(), "How many days of paid leave are there a year?")
    assert found[0] == "Leave: Every employee has 25 days of paid leave a year. [leave.md#1]"
    assert len(found) <= 3


def test_a_heading_counts_for_what_stands_under_it(made: Made) -> None:
    index = made({"w.md": "# Opening hours\n\nFrom nine to five.\n\n# Address\n\nMain street.\n"})
    assert quoted(index, "opening hours?") == ["Opening hours: From nine to five. [w.md#1]"]


@pytest.mark.parametrize("question", ["Which bicycles are repainted?", "what is it?", ""])
def test_where_nothing_matches_nothing_is_quoted(made: Made, question: str) -> None:
    assert quoted(made(), question) == []
