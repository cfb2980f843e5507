"""Answers that quote documents: which chunks are read, which sentences are quoted, with the arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from langchain_core.embeddings import Embeddings

from callsheet.retrievers.documents import LONGEST_ANSWER, DocumentIndex, best_chunks, best_passages

Made = Callable[..., DocumentIndex]


def quoted(index: DocumentIndex, question: str) -> list[str]:
    return best_passages(question, index, index.lexicon.ids)


def test_the_best_passages_have_their_headings_and_citations(made: Made) -> None:
    found = quoted(made(), "How many days of paid leave are there a year?")
    assert found == ["Leave: Every employee has 25 days of paid leave a year. [leave.md#1]"]


@pytest.mark.parametrize("question", ["Which bicycles are repainted?", "what is it?", ""])
def test_nothing_is_quoted_if_no_sentence_has_a_third_of_the_words(made: Made, question: str) -> None:
    assert quoted(made(), question) == []


def test_a_heading_counts_for_what_stands_under_it(made: Made) -> None:
    index = made({"w.md": "# Opening hours\n\nFrom nine to five.\n\n# Address\n\nMain street.\n"})
    assert quoted(index, "opening hours?") == ["Opening hours: From nine to five. [w.md#1]"]


def test_an_answer_has_at_most_1500_characters(made: Made) -> None:
    sentences = [f"Leave of kind {n} is paid {'a lot ' * 20}." for n in range(40)]
    found = quoted(made({"a.txt": " ".join(sentences)}), "Which leave is paid?")
    assert LONGEST_ANSWER - len(found[0]) < len("\n".join(found)) <= LONGEST_ANSWER == 1_500


def test_a_question_is_compared_with_the_documents_once_until_they_change(
    made: Made, write: Callable[[dict[str, str | bytes]], Path]
) -> None:
    index = made()
    question = "How many days of paid leave are there?"
    similar = index.similar(question)
    best_passages(question, index, best_chunks(question, index))
    assert index.similar(question) is similar
    write({"leave.md": "Nobody has any paid leave.\n"})
    index.sync()
    assert best_passages(question, index, ["leave.md#1"]) == ["Nobody has any paid leave. [leave.md#1]"]
    assert index.similar(question) is not similar


class Drawn(Embeddings):
    """Each sentence is an arrow, drawn by hand; the question is (1, 0)."""

    name = "drawn"
    ARROWS: ClassVar = {"leave": [3.0, 4.0], "train": [0.0, 1.0], "question": [1.0, 0.0]}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return next(arrow for word, arrow in self.ARROWS.items() if word in text.lower())


def test_a_chunk_scores_by_its_best_sentence_and_its_share_of_the_words(
    write: Callable[[dict[str, str | bytes]], Path],
) -> None:
    """a: cos = 3/5 and no word, .6; b: cos = 0 and the only word that a document has, 1."""
    index = DocumentIndex(
        write({"a.txt": "Leave is paid.", "b.txt": "Trains run late."}), embeddings=Drawn(), index=":memory:"
    )
    index.sync()
    assert best_chunks("question: late?", index) == ["b.txt#1", "a.txt#1"]
    assert best_chunks("question?", index, top_k=1) == ["a.txt#1"]


def test_a_sentence_with_half_of_the_best_score_is_quoted_and_no_weaker_one(
    write: Callable[[dict[str, str | bytes]], Path],
) -> None:
    """Of the words "question", "paid" and "late", leave has two, own = 3/5 + .5 * 2/3 = .93; trains have one or two.

    One: own = 0 + .5 * 1/3 = .17, below .93 / 2. With "question": own = 0 + .5 * 2/3 = .33, below it too. With all
    three: own = 0 + .5 * 3/3 = .5, above it.
    """
    leave = "Leave is paid late."
    for train, quotes in [("late", False), ("late, no question", False), ("late, paid without question", True)]:
        index = DocumentIndex(
            write({"a.txt": leave, "b.txt": f"Trains are {train}."}), embeddings=Drawn(), index=":memory:"
        )
        index.sync()
        found = quoted(index, "question: paid late?")
        assert f"{leave} [a.txt#1]" in found
        assert (len(found) == 2) is quotes
