from __future__ import annotations

import math

import numpy as np
import pytest

from callsheet.graphs.text.words import STOP_WORDS, tokens
from callsheet.retrievers import LexicalIndex, Node


def found(made: LexicalIndex, query: str) -> list[int]:
    """Rows of the nodes that share words with a query, best first."""
    scores = made.scores(query).scores
    return [row for row in np.argsort(-scores, kind="stable").tolist() if scores[row] > 0]


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
    assert found(index(a="날씨를 알려줘", b="번역"), "날씨가") == [0]


def test_the_nodes_that_share_words_come_best_first() -> None:
    made = index(a="apple", b="apple banana banana", c="cherry")
    assert found(made, "banana apple") == [1, 0]
    scores = made.scores("banana apple").scores
    assert scores.shape == (3,)
    assert scores.dtype == np.float32
    assert scores[1] > scores[0] > scores[2] == 0


def test_nodes_of_the_same_words_have_the_same_score() -> None:
    assert len(set(index(a="apple", b="apple", c="apple").scores("apple").scores.tolist())) == 1


@pytest.mark.parametrize("query", ["", "   ", "the and of", "zebra", "\ud800"])
def test_a_query_without_a_known_word_finds_nothing(query: str) -> None:
    matches = index(a="apple", b="banana").scores(query)
    assert (matches.scores.tolist(), matches.coverage) == ([0.0, 0.0], 0.0)


@pytest.mark.parametrize("words", [{}, {"a": ""}, {"a": "the", "b": "of"}])
def test_an_empty_corpus_finds_nothing(words: dict[str, str]) -> None:
    assert index(**words).scores("apple").scores.tolist() == [0.0] * len(words)


def test_a_node_without_words_is_never_found() -> None:
    assert found(index(a="", b="apple"), "apple") == [1]


def test_coverage_is_the_share_of_rarity_that_the_best_match_holds() -> None:
    made = index(a="apple banana", b="apple cherry")
    rare, common, unknown = math.log1p(1.5 / 1.5), math.log1p(0.5 / 2.5), math.log1p(2.5 / 0.5)
    assert made.scores("banana").coverage == pytest.approx(1.0)
    assert made.scores("banana zebra").coverage == pytest.approx(rare / (rare + unknown))
    assert made.scores("banana cherry").coverage == pytest.approx(rare / (rare + rare))
    assert made.scores("banana apple zebra").coverage == pytest.approx((rare + common) / (rare + common + unknown))


def test_a_word_asked_twice_counts_once() -> None:
    made = index(a="apple banana", b="apple cherry")
    twice, once = made.scores("banana banana zebra"), made.scores("banana zebra")
    assert (twice.scores.tolist(), twice.coverage) == (once.scores.tolist(), once.coverage)


def test_stop_words_are_in_the_form_that_words_are_compared_in() -> None:
    assert all(word == word.casefold() and word.isalpha() for word in STOP_WORDS)
