from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from callsheet.retrievers.documents import (
    Block,
    Passage,
    content_words,
    document_text,
    estimated_tokens,
    passages_of,
    sentences_of,
)
from callsheet.retrievers.documents.document_text import LONGEST_SENTENCE


def cut(text: str) -> list[str]:
    return [sentence.strip() for sentence in sentences_of(text)]


def test_sentences_end_where_a_reader_ends_them() -> None:
    text = "Dr. Smith lives in Washington, D.C. He met J. K. Rowling. It cost $3.50! Really?"
    assert cut(text) == ["Dr. Smith lives in Washington, D.C.", "He met J. K. Rowling.", "It cost $3.50!", "Really?"]


def test_sentences_of_other_scripts() -> None:
    assert cut("这是第一句。这是第二句！你好吗？") == ["这是第一句。", "这是第二句！", "你好吗？"]
    assert cut("これは文です。次の文です。") == ["これは文です。", "次の文です。"]
    assert cut("नमस्ते। आप कैसे हैं?") == ["नमस्ते।", "आप कैसे हैं?"]
    assert cut("مرحبا. كيف حالك؟") == ["مرحبا.", "كيف حالك؟"]


def test_without_the_extra_full_stops_end_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_text, "HAS_SENTENCEX", False)
    assert cut('It cost $3.50! He said: "Really?" She left.') == ["It cost $3.50!", 'He said: "Really?"', "She left."]
    assert cut("这是第一句。这是第二句！你好吗？") == ["这是第一句。", "这是第二句！", "你好吗？"]
    for text in ("...!? .", "no end", "A.\n\n# B\nc. " * 3_000):
        assert "".join(sentences_of(text)) == text


def test_a_blank_line_ends_a_sentence() -> None:
    assert cut("# Leave\n\nThere are 25 days\n\n\nof it") == ["# Leave", "There are 25 days", "of it"]


def test_an_unclosed_quotation_mark_does_not_swallow_the_rest() -> None:
    text = 'He said: "yes. ' + "It went on. " * 200
    assert len(cut(text)) > 190


def test_what_has_no_end_is_cut_at_a_space() -> None:
    pieces = cut("word " * 1_000)
    assert all(len(piece) <= LONGEST_SENTENCE for piece in pieces)
    assert all(piece.startswith("word") and piece.endswith("word") for piece in pieces)
    assert [len(piece) for piece in cut("x" * 2_500)] == [1_000, 1_000, 500]


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from('. !?"(\n。「'))))
def test_nothing_is_lost_between_sentences(text: str) -> None:
    assert "".join(sentences_of(text)) == text


def test_tokens_are_a_quarter_of_the_bytes() -> None:
    assert [estimated_tokens(text) for text in ("", "a", "word", "words", "日本", "Ünï")] == [0, 1, 1, 2, 2, 2]


def test_passages_hold_whole_sentences_up_to_their_size() -> None:
    sentence = "This sentence has forty characters, see. "
    (first, second) = passages_of([Block(sentence * 15)], tokens=110)
    assert (len(first.ends), len(second.ends)) == (10, 5)
    assert first.sentences == (sentence.strip(),) * 10
    assert estimated_tokens(first.text) <= 110


def test_a_passage_begins_on_its_page() -> None:
    pages = [Block("One. " * 20, page=1), Block("Two. " * 20, page=2)]
    assert [passage.page for passage in passages_of(pages, tokens=40)] == [1, 2]


def test_blocks_end_sentences_and_empty_ones_are_passed_over() -> None:
    (passage,) = passages_of([Block("a"), Block("  \n"), Block("b")])
    assert passage == Passage("a\nb\n", (2, 4))
    assert list(passages_of([Block(" ")])) == []


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("# Vacation\nManagers have 30 days. Interns 12.\n", ["# Vacation", "Managers have 30 days.", "Interns 12."]),
        ("One\n## Two\nthree.", ["One", "## Two", "three."]),
        ("#tag of one\nline.", ["#tag of one\nline."]),
    ],
)
def test_a_heading_is_a_paragraph_of_its_own(text: str, sentences: list[str]) -> None:
    assert cut(text) == sentences
    assert "".join(sentences_of(text)) == text


def test_content_words_leave_out_what_says_nothing() -> None:
    assert content_words("How many days of the LEAVE are there? Days!") == ["days", "leave"]
    assert content_words("北京大学") == ["北京", "京大", "大学"]
