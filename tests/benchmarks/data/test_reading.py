"""What is measured on documents: definitions by hand, and the whole on a few documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.measurements import arag, extractive
from benchmarks.measurements.arag import Rules, contains, hotpotqa, medical, musique, names
from benchmarks.report import FOLDER


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two questions over four paragraphs; a text of a few sentences."""
    context = [
        ["Leave", ["Anna Berg signs requests for leave."]],
        ["Anna Berg", ["Anna Berg sits in Oslo."]],
        ["Trains", ["Trains are slow."]],
        ["Meals", ["Meals cost 28 euro."]],
    ]
    hops = [["Leave", 0], ["Anna Berg", 0]]
    questions = [
        {
            "question": "Where does the one sit who signs leave?",
            "answer": "Oslo",
            "supporting_facts": hops,
            "context": context[:2],
        },
        {"question": "What do meals cost on slow trains?", "answer": "28 euro", "supporting_facts": [["Meals", 0]]}
        | {"context": context[2:]},
    ]
    (tmp_path / "hotpotqa").mkdir()
    (tmp_path / "hotpotqa" / "distractor_sample_100.json").write_text(json.dumps(questions))
    parts = [
        {"title": title, "paragraph_text": text, "is_supporting": place < 2}
        for place, (title, (text,)) in enumerate([*context, ["Leave", ["Another leave."]]])
    ]
    hop = {"question": questions[0]["question"], "answer": "The Oslo!", "answer_aliases": ["OSL"], "paragraphs": parts}
    (tmp_path / "musique").mkdir()
    (tmp_path / "musique" / "musique_train.json").write_text(json.dumps([hop]))
    (tmp_path / "graphrag-bench").mkdir()
    (tmp_path / "graphrag-bench" / "medical.json").write_text(
        json.dumps([{"context": "Basal cell carcinoma grows slowly. Melanoma spreads early."}])
    )
    asked = [
        {"question": "Which cancer grows slowly?", "answer": "Basal cell carcinoma"},
        {"question": "Which is treated by surgery?", "answer": "Something entirely different"},
        {"question": "Is it?", "answer": "No"},
    ]
    (tmp_path / "graphrag-bench" / "medical_questions.json").write_text(json.dumps(asked))
    return tmp_path


@pytest.mark.parametrize("collected", [hotpotqa, musique])
def test_a_paragraph_counts_when_it_was_read(data: Path, collected: Any) -> None:
    with collected(data) as (_, (first, *_)):
        assert [first.recall(read) for read in ([], ["0000.md#1"], ["0000.md#1", "0001.md#1"])] == [0, 0.5, 1]
        assert [first.complete(read) for read in (["0000.md#1"], ["0000.md#1", "0001.md#1", "0003.md#1"])] == [
            False,
            True,
        ]


@pytest.mark.parametrize(
    ("text", "answers", "contained"),
    [
        ("She sits in Oslo, Norway.", ["the Oslo"], True),
        ("She sits in oslo", ["Bergen", "O.S.L.O."], True),
        ("She sits in Bergen.", ["Oslo"], False),
        ("Anything", ["the"], False),
        ("Anything", [], False),
    ],
)
def test_an_answer_is_contained_without_articles_and_punctuation(
    text: str, answers: list[str], contained: bool
) -> None:
    assert contains(text, answers) is contained


def test_an_answer_is_borne_by_the_chunk_with_its_words(data: Path) -> None:
    with medical(data) as (_, (question,)):
        assert question.text == "Which cancer grows slowly?"
        assert (question.recall(["medical.txt#1"]), question.recall([])) == (1, 0)
        assert question.complete(["medical.txt#1"])
        assert not question.complete([])


def test_every_method_reads_and_counts(data: Path) -> None:
    with hotpotqa(data) as (index, (first, _)):
        played = {name: method(first.text) for name, method in arag.methods(index, Rules(tokens=30)).items()}
    full, naive = played[arag.FULL], played["naive RAG, top 5 chunks"]
    assert list(full.read)[:2] == ["0000.md#1", "0001.md#1"]
    assert (len(naive.read), len(naive.calls)) == (4, 1)
    assert full.calls[:3] == ["keyword_search", "semantic_search", "chunk_read"]
    assert set(played["without chunk read"].calls) == {"chunk_read"}
    assert full.tokens > played["without semantic search"].tokens


def test_the_published_figures_hold_what_was_promised() -> None:
    """Ten points of recall more than naive retrieval, at no more tokens; eight on the half not tuned on."""
    rows = json.loads((FOLDER / "documents" / "arag-hotpotqa.json").read_text(encoding="utf-8"))["rows"]
    figures = {row[0]: dict(zip(arag.COLUMNS, row, strict=True)) for row in rows}
    full, naive = figures[arag.FULL], figures["naive RAG, top 5 chunks"]
    assert int(full["retrieved tokens"]) <= int(naive["retrieved tokens"])
    for column, points in (("recall", 0.10), ("recall, other half", 0.08)):
        assert float(full[column].split()[0]) >= float(naive[column].split()[0]) + points


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The Fight of the Century, by J. K. Rowling", ["Fight of the Century", "J. K. Rowling"]),
        ("Who signs it, John Emory? In 1915 he did.", ["John Emory", "1915"]),
        ('She sang "text me" with the U.S. Army', ["text me", "U.S. Army"]),
        ("Poland and Switzerland", ["Poland and Switzerland", "Poland", "Switzerland"]),
        ("Émile Zola und Ödön von Horváth", ["Émile Zola", "Ödön von Horváth"]),
        ("Толстой жил в Москве", ["Толстой", "Москве"]),
        ("nothing here", []),
        ("", []),
    ],
)
def test_names_are_recognised_by_their_form(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_answers_without_a_model_are_measured_on_every_set_that_is_there(data: Path) -> None:
    rows = {row[0]: row[1:] for row in extractive.measure(data)["rows"]}  # type: ignore[attr-defined]
    assert {name: row[0] for name, row in rows.items()} == {"HotpotQA": "2", "MuSiQue": "1", "medical": "1"}
    assert rows["HotpotQA"][:4] == ["2", "1.000", "1.000", "1.000"]
