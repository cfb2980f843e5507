from __future__ import annotations

import math

import pytest

from callsheet.retrievers import LexicalIndex, Node
from callsheet.retrievers.lexical import STOP_WORDS, tokens


def index(**words: str) -> LexicalIndex:
    return LexicalIndex([Node(name, "tool", "a", "", text) for name, text in words.items()])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Converts converting converted", ["convert"] * 3),
        ("café CAFÉ cafe\u0301", ["cafe"] * 3),
        ("ﬁle ＦＩＬＥ", ["file"] * 2),
        ("snake_case kebab-case", ["snake", "case", "kebab", "case"]),
        ("please show me the and of", []),
        ("", []),
        ("!?", []),
        ("x\ud800y", ["x", "y"]),
    ],
)
def test_words_are_folded_stemmed_and_without_stop_words(text: str, words: list[str]) -> None:
    assert tokens(text) == words


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("天气预报", ["天气", "气预", "预报"]),
        ("查", ["查"]),
        ("날씨를 검색", ["날씨", "씨를", "검색"]),
        ("ガラス", ["ガラ", "ラス"]),
        ("ｶﾞﾗｽ", ["ガラ", "ラス"]),
        ("用git提交", ["用", "git", "提交"]),
    ],
)
def test_chinese_japanese_and_korean_go_in_pairs_of_characters(text: str, pairs: list[str]) -> None:
    assert tokens(text) == pairs


def test_a_korean_word_is_found_with_another_ending() -> None:
    assert [hit.id for hit in index(a="날씨를 알려줘", b="번역").search("날씨가", 5).hits] == ["a"]


def test_the_nodes_that_share_words_come_best_first() -> None:
    found = index(a="apple", b="apple banana banana", c="cherry").search("banana apple", 5)
    assert [hit.id for hit in found.hits] == ["b", "a"]
    assert found.hits[0].score > found.hits[1].score > 0


def test_at_most_k_nodes() -> None:
    made = index(a="apple", b="apple", c="apple")
    assert [hit.id for hit in made.search("apple", 2).hits] == ["a", "b"]
    assert made.search("apple", 0).hits == ()


@pytest.mark.parametrize("query", ["", "   ", "the and of", "zebra", "\ud800"])
def test_a_query_without_a_known_word_finds_nothing(query: str) -> None:
    found = index(a="apple", b="banana").search(query, 5)
    assert (list(found.hits), found.coverage) == ([], 0.0)


@pytest.mark.parametrize("words", [{}, {"a": ""}, {"a": "the", "b": "of"}])
def test_an_empty_corpus_finds_nothing(words: dict[str, str]) -> None:
    assert list(index(**words).search("apple", 5).hits) == []


def test_a_node_without_words_is_never_found() -> None:
    assert [hit.id for hit in index(a="", b="apple").search("apple", 5).hits] == ["b"]


def test_coverage_is_the_share_of_rarity_that_the_best_match_holds() -> None:
    made = index(a="apple banana", b="apple cherry")
    rare, common, unknown = math.log1p(1.5 / 1.5), math.log1p(0.5 / 2.5), math.log1p(2.5 / 0.5)
    assert made.search("banana", 5).coverage == pytest.approx(1.0)
    assert made.search("banana zebra", 5).coverage == pytest.approx(rare / (rare + unknown))
    assert made.search("banana cherry", 5).coverage == pytest.approx(rare / (rare + rare))
    assert made.search("banana apple zebra", 5).coverage == pytest.approx((rare + common) / (rare + common + unknown))


def test_a_word_asked_twice_counts_once() -> None:
    made = index(a="apple banana", b="apple cherry")
    assert made.search("banana banana zebra", 5) == made.search("banana zebra", 5)


def test_stop_words_are_in_the_form_that_words_are_compared_in() -> None:
    assert all(word == word.casefold() and word.isalpha() for word in STOP_WORDS)
