"""What a folder of documents costs."""

from __future__ import annotations

from benchmarks.costs.document_costs import pages, rows_of


def test_pages_have_the_size_asked_for_and_no_sentence_twice() -> None:
    texts = list(pages(1))
    assert 1_000_000 <= sum(map(len, texts)) < 1_060_000
    sentences = [part for text in texts for part in text.split(". ") if part.startswith("To ")]
    assert len(sentences) > 5_000
    assert len(set(sentences)) > 0.99 * len(sentences)
    assert texts == list(pages(1))


def test_each_kind_of_search_has_a_row_with_its_percentiles() -> None:
    searches = {"words": [1.0, 2.0, 3.0], "meaning, first": [10.0, 10.0, 70.0]}
    found = {"megabytes": 10, "index_seconds": 61.4, "peak_mb": 399.6, "searches": searches}
    assert rows_of(found) == [
        ["10", "61", "400", "words", "2.0", "2.9", "50"],
        ["10", "61", "400", "meaning, first", "10.0", "64.0", "50"],
    ]
