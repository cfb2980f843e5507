"""What is measured on documents: definitions by hand, and the whole on a few documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata

from benchmarks.measurements import arag, arag_model, extractive
from benchmarks.measurements.arag import Rules, contains, hotpotqa, medical, musique, names
from benchmarks.measurements.arag_model import wilson
from benchmarks.report import FOLDER
from callsheet.agents import ModelError
from scripted_model import ScriptedModel


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


def reading(*chunks: str) -> AIMessage:
    call = ToolCall(name="chunk_read", args={"chunk_ids": list(chunks)}, id="1", type="tool_call")
    usage = UsageMetadata(input_tokens=100, output_tokens=10, total_tokens=110)
    return AIMessage("", tool_calls=[call], usage_metadata=usage)


def test_the_loop_with_a_model_is_measured_beside_the_answers_without_one(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first question is answered rightly from one of its two paragraphs, the second one wrongly from another."""
    questions = {"Oslo": "Where does the one sit who signs leave?", "28 euro": "What do meals cost on slow trains?"}
    with hotpotqa(data) as (_, asked):
        order = [question.text for question in arag_model.sample(asked)]
    replies = {
        questions["Oslo"]: [reading("0001.md#1"), AIMessage("In Oslo [0001.md#1].")],
        questions["28 euro"]: [reading("0002.md#1"), AIMessage("Nothing [0002.md#1].")],
    }
    model = ScriptedModel(replies=[reply for question in order for reply in replies[question]])
    models = {"test:model": model, "test:broken": ScriptedModel(replies=[ConnectionError("gone")])}
    monkeypatch.setattr("callsheet.orchestrator.apps.arag_graph.chat_model", models.__getitem__)
    monkeypatch.setattr(arag_model, "AT_ONCE", 1)
    monkeypatch.setattr(arag_model, "ATTEMPTS", tmp_path / "attempts")
    body: Any = arag_model.measure(data, "test:model")
    without, with_model = (dict(zip(body["columns"], row, strict=True)) for row in body["rows"])
    assert (without[""], without["model calls"], without["n"]) == ("without a model", "0.0", "2")
    assert with_model[""] == "test:model"
    shares = [with_model[name].partition(" ")[0] for name in ("Contain-Acc", "answer in what was read", "recall")]
    assert shares == [".500", ".500", ".250"]
    assert [with_model[name] for name in ("chunks read", "searches", "model calls", "input")] == [
        "1.0",
        "0.0",
        "2.0",
        "100",
    ]
    asked_again: Any = arag_model.measure(data, "test:model")
    assert asked_again["rows"] == body["rows"], "answers are stored"
    with pytest.raises(ModelError, match=r"no answer to 'W.*: the model did not answer"):
        arag_model.measure(data, "test:broken")


def test_the_interval_of_a_share_is_wilsons() -> None:
    """Of 20 of 20: the lower end is 1 / (1 + z^2 / n) = 1 / (1 + 3.8416 / 20)."""
    assert wilson(20, 20) == pytest.approx((1, 1 / (1 + 1.96**2 / 20), 1))
    assert wilson(8, 10) == pytest.approx((0.8, 0.490, 0.943), abs=0.001)
