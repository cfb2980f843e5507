"""What ships without a language model: the answers that quote documents, on the sets of A-RAG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.bootstrap import short
from benchmarks.measurements.arag import SETS, Question
from callsheet.retrievers.documents import DocumentIndex, best_chunks, best_passages

COLUMNS = ("", "n", "recall", "read", "answer", "answer, tuning half", "answer, other half", "characters", "longest")
NAMES: Mapping[str, str] = {"hotpotqa": "HotpotQA", "musique": "MuSiQue", "graphrag-bench": "medical"}
_ABOUT = (
    "What `callsheet documents ask` does without a model: five chunks are read, and their best sentences quoted, at "
    "most 1,500 characters with headings and citations. Recall is that of the tables of the three interfaces. Read, "
    "answer: the share of questions whose short answer is in what was read, in the answer (Contain-Acc); medical, "
    "whose answers are long: the mean share of their words. The weights were chosen on the even questions of HotpotQA "
    "(tuning half); of the other sets, the halves are two samples. Characters: of an answer, on average, and at most"
)


class Answered(NamedTuple):
    """For one question: its place, recall, how much of its answer is in what was read and in ours, our characters."""

    place: int
    recall: float
    read: float
    answer: float
    characters: int


def measure(data: Path) -> Mapping[str, object]:
    """The body of the results file: a row for each set that is there."""
    rows = []
    for name, title in NAMES.items():
        if (data / name).is_dir():
            collected, _, _ = SETS[name]
            with collected(data) as (index, questions):
                rows.append([title, *_cells(list(answered(index, questions)))])
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def answered(index: DocumentIndex, questions: Sequence[Question]) -> Iterator[Answered]:
    """Asks every question whose answer can be looked for in a text."""
    for place, question in enumerate(questions):
        if not (question.answers or question.words):
            continue
        chunks = best_chunks(question.text, index)
        texts = [chunk.text for name in chunks if (chunk := index.chunk(name)) is not None]
        answer = "\n".join(best_passages(question.text, index, chunks))
        read = question.contained(" ".join(texts))
        yield Answered(place, question.recall(chunks), read, question.contained(answer), len(answer))


def _cells(runs: Sequence[Answered]) -> list[str]:
    _, recall, read, answer, characters = np.mean(runs, axis=0).tolist()
    halves: list[str] = []
    for half in (0, 1):
        answers = [run.answer for run in runs if run.place % 2 == half]
        halves.append(short(float(np.mean(answers))) if answers else "")
    longest = max(run.characters for run in runs)
    return [str(len(runs)), *map(short, (recall, read, answer)), *halves, f"{characters:,.0f}", f"{longest:,}"]
