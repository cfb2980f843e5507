"""Collections of documents with questions: what has to be read to answer each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.search import SharedVectors, vectors_of_this_run
from callsheet.retrievers.documents import DocumentIndex, content_words
from callsheet.retrievers.documents.document_text import plain

BEARING = 0.75
"""The share of an answer's content words that a chunk must hold to bear it."""
_PART, _MOST, _LEAST_WORDS = 200_000, 100, 2


class Question(NamedTuple):
    """A question, and from the ids of the chunks read, how much of what is needed was read, 0 to 1, and whether all."""

    text: str
    recall: Callable[[Collection[str]], float]
    complete: Callable[[Collection[str]], bool]


class Collected(NamedTuple):
    """Documents with their questions, in the order of their file, and the embedder of their index."""

    index: DocumentIndex
    questions: tuple[Question, ...]
    vectors: SharedVectors


@contextmanager
def hotpotqa(data: Path) -> Iterator[Collected]:
    """The paragraphs of 100 questions pooled into one collection, a paragraph a document; two support each question.

    Source: Yang et al., HotpotQA (EMNLP 2018), distractor setting, CC BY-SA 4.0.
    """
    asked = json.loads((data / "hotpotqa" / "distractor_sample_100.json").read_text(encoding="utf-8"))
    paragraphs = {title: "".join(sentences) for question in asked for title, sentences in question["context"]}
    file_of = {title: f"{number:04}.md" for number, title in enumerate(paragraphs)}
    texts = {file_of[title]: f"# {title}\n\n{text}\n" for title, text in paragraphs.items()}
    with _indexed(texts) as (index, vectors):
        questions = [_supported(one, {file_of[title] for title, _ in one["supporting_facts"]}) for one in asked]
        yield Collected(index, tuple(questions), vectors)


@contextmanager
def medical(data: Path) -> Iterator[Collected]:
    """The first 200,000 characters of one long text, and questions whose answer some chunk of these bears.

    Source: GraphRAG-Bench (github.com/GraphRAG-Bench/GraphRAG-Benchmark), medical.
    """
    folder = data / "graphrag-bench"
    text = json.loads((folder / "medical.json").read_text(encoding="utf-8"))[0]["context"]
    asked = json.loads((folder / "medical_questions.json").read_text(encoding="utf-8"))
    with _indexed({"medical.txt": text[:_PART]}) as (index, vectors):
        texts = dict(zip(index.lexicon.ids, index.lexicon.texts(), strict=True))
        found = [(one["question"], answer_words(one["question"], one["answer"])) for one in asked]
        questions = [_worded(question, words, texts) for question, words in found if len(words) >= _LEAST_WORDS]
        borne = [question for question in questions if question.complete(texts)]
        yield Collected(index, tuple(borne[:: -(-len(borne) // _MOST) or 1]), vectors)


def answer_words(question: str, answer: str) -> list[str]:
    """The content words of an answer that its question does not hold; each at most seven letters, as a stem."""
    asked = plain(question)
    return list(dict.fromkeys(word[:7] for word in content_words(answer) if word[:7] not in asked))


def _supported(one: Mapping[str, Any], files: set[str]) -> Question:
    def read(chunks: Collection[str]) -> set[str]:
        return {chunk.rpartition("#")[0] for chunk in chunks} & files

    return Question(
        one["question"], lambda chunks: len(read(chunks)) / len(files), lambda chunks: len(read(chunks)) == len(files)
    )


def _worded(question: str, words: Sequence[str], texts: Mapping[str, str]) -> Question:
    def share(text: str) -> float:
        return sum(word in text for word in words) / len(words)

    return Question(
        question,
        lambda chunks: share(" ".join(texts[chunk] for chunk in chunks)),
        lambda chunks: any(share(texts[chunk]) >= BEARING for chunk in chunks),
    )


@contextmanager
def _indexed(files: Mapping[str, str]) -> Iterator[tuple[DocumentIndex, SharedVectors]]:
    vectors = vectors_of_this_run()
    with tempfile.TemporaryDirectory() as name:
        for file, text in files.items():
            Path(name, file).write_text(text, encoding="utf-8")
        index = DocumentIndex(name, embeddings=vectors, index=":memory:")
        index.sync()
        yield index, vectors
