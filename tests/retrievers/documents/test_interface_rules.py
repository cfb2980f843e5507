from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.measurements.arag import Interface, Rules, Words, by_rules, names
from callsheet.retrievers.documents import DocumentIndex, content_words

Made = Callable[..., DocumentIndex]
QUESTION = "In which city does the person work who signs requests for leave?"
DISTRACTORS = {f"x{i}.md": f"# Matter {i}\n\nPaint and bricks of colour {i} are kept in shed {i}.\n" for i in range(20)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The Fight of the Century, by J. K. Rowling", ["Fight of the Century", "J. K. Rowling"]),
        ("Who signs it, John Emory? In 1915 he did.", ["John Emory", "1915"]),
        ('She sang "text me" with the U.S. Army', ["text me", "U.S. Army"]),
        ("Poland and Switzerland", ["Poland and Switzerland", "Poland", "Switzerland"]),
        ("Émile Zola und Ödön von Horváth", ["Émile Zola", "Ödön von Horváth"]),
        ("Толстой жил в Москве", ["Толстой", "Москве"]),
        ("休暇は25日", []),
        ("nothing here", []),
        ("", []),
    ],
)
def test_names_by_their_form(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_content_words_leave_out_what_says_nothing() -> None:
    assert content_words("How many days of the LEAVE are there? Days!") == ["days", "leave"]
    assert content_words("北京大学") == ["北京", "京大", "大学"]


def test_rarity_is_inverse_document_frequency(made: Made) -> None:
    """log(1 + (N - n + .5) / (n + .5)), divided by that of a word of one chunk."""
    index = made({"a.txt": "Alpha beta.", "b.txt": "Beta gamma.", "c.txt": "Beta delta."})
    found = Words(index, ["alpha", "beta", "absent"])
    beta = math.log1p((3 - 3 + 0.5) / (3 + 0.5)) / math.log1p((3 - 0.5) / 1.5)
    assert found.rarity == pytest.approx(np.array([1.0, beta, 0.0]))
    assert found.coverage(["alpha", "beta"]) == pytest.approx(np.array([1.0, beta / (1 + beta), beta / (1 + beta)]))


def test_key_phrases_then_meaning_then_reading_then_names(made: Made) -> None:
    assert by_rules(made(), QUESTION, Rules()).calls[:5] == [
        ("keyword_search", content_words(QUESTION)),
        ("semantic_search", QUESTION),
        ("chunk_read", ["leave.md#1"]),
        ("keyword_search", ["Leave", "Anna Berg"]),
        ("chunk_read", ["people.md#1"]),
    ]


def test_the_second_hop_is_found_among_many(made: Made) -> None:
    files = {
        "leave.md": "# Leave\n\nAnna Berg signs requests for leave.\n",
        "anna.md": "# Anna Berg\n\nShe sits in Oslo.\n",
    }
    reader = by_rules(made({**files, **DISTRACTORS}), "Where is the one who signs requests for leave?", Rules())
    assert list(reader.read)[:2] == ["leave.md#1", "anna.md#1"]


@pytest.mark.parametrize("interfaces", [("keyword_search", "chunk_read"), ("semantic_search", "chunk_read")])
def test_without_an_interface_it_is_not_called(made: Made, interfaces: tuple[Interface, ...]) -> None:
    reader = by_rules(made(), QUESTION, Rules(), interfaces)
    assert {name for name, _ in reader.calls} == set(interfaces)
    assert "leave.md#1" in reader.read
