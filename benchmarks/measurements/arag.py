"""A-RAG without a language model: which interface to call next, by rules, and what is read for each retrieved token.

Key phrases first, then meaning, then reading; from what was read to the names in it, for a second hop. Measured with
and without each interface, on collections of documents whose questions say what has to be read.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.bootstrap import Bootstrap, cell, short
from benchmarks.search import SharedVectors, vectors_of_this_run
from benchmarks.sets.names import first_line, names, titles_of
from callsheet.retrievers.documents import (
    DocumentIndex,
    Hits,
    Reading,
    chunk_read,
    content_words,
    estimated_tokens,
    keyword_search,
    semantic_search,
)
from callsheet.retrievers.documents.document_text import plain, rarity

Scores = NDArray[np.floating[Any]]
BEARING = 0.75
"""The share of an answer's content words that a chunk must hold to bear it."""
_PART, _MOST, _LEAST_WORDS, _COUNTED = 200_000, 100, 2, 2


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


class Words:
    """The occurrences of keywords in the chunks of ``index.lexicon.ids``.

    ``rarity`` is ``(keys,)``, 1 for a keyword in one chunk, near 0 for one in nearly all, 0 for one in none. Of shape
    ``(chunks, keys)``: ``held``, number of occurrences, up to 2, divided by 2, and ``title``, the share of the keyword
    in the chunk's title.
    """

    def __init__(self, index: DocumentIndex, keywords: Sequence[str]) -> None:
        self.keys = tuple(dict.fromkeys(filter(None, map(plain, keywords))))
        chunks, occurrences = len(index.lexicon.ids), index.lexicon.occurrences(self.keys)
        self.held: Scores = np.zeros((chunks, len(self.keys)), np.float32)
        self.title: Scores = np.zeros((chunks, len(self.keys)), np.float32)
        titles = titles_of(index)
        for column, key in enumerate(self.keys):
            places = occurrences[key]
            self.held[places.rows, column] = np.minimum(places.counts, _COUNTED) / _COUNTED
            for row in places.rows:
                self.title[row, column] = len(key) / max(len(titles[row]), 1) if key in titles[row] else 0.0
        rarities = [rarity(len(occurrences[key].rows), chunks) for key in self.keys]
        self.rarity = np.array(rarities, np.float32)

    def coverage(self, keys: Collection[str]) -> Scores:
        """``(chunks,)``, a chunk's share of these keywords, each weighted by its rarity, 0 to 1."""
        weights = self._weights(keys)
        share: Scores = ((self.held > 0) @ weights / max(float(weights.sum()), 1e-9)).astype(np.float32)
        return share

    def titled(self, keys: Collection[str]) -> Scores:
        """``(chunks,)``, the share of the rarest of these keywords in a title, 0 to 1."""
        return _largest(self.title * self._weights(keys))

    def linked(self, rules: Rules) -> Scores:
        """``(chunks,)``, how far a chunk concerns the rarest of the keywords, by its title and its text."""
        about = rules.linked_title * self.title + rules.linked_mention * self.held
        return _largest(about * self.rarity**rules.rarity)

    def _weights(self, keys: Collection[str]) -> Scores:
        return np.where([key in keys for key in self.keys], self.rarity, 0.0)


def meaning_of(index: DocumentIndex, query: str, ids: Sequence[str]) -> tuple[Scores, Scores]:
    """``(chunks,)`` twice: the cosine of each chunk's best sentence with a query, and the mean over its sentences."""
    similar, row = index.similar(query), {chunk: row for row, chunk in enumerate(ids)}
    best, mean = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.float32)
    if similar.chunks:
        means = np.add.reduceat(similar.sentences, similar.starts[:-1]) / np.diff(similar.starts)
        for i, chunk in enumerate(similar.chunks):
            best[row[chunk]], mean[row[chunk]] = similar.scores[i], means[i]
    return best, mean


def _largest(values: Scores) -> Scores:
    """The largest value of each row, none of which is negative; 0 for rows without any."""
    largest: Scores = values.max(axis=1, initial=0).astype(np.float32)
    return largest


Interface = Literal["keyword_search", "semantic_search", "chunk_read"]
ALL: tuple[Interface, ...] = ("keyword_search", "semantic_search", "chunk_read")
_LEAST_NAME = 4


class Call(NamedTuple):
    """One call of an interface."""

    name: Interface
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rules:
    """How the rules weigh what speaks for a chunk, and when they stop. Scores are cosines or shares, 0 to 1.

    Attributes:
        tokens: Retrieved tokens after which nothing more is read.
        least: How many chunks are read in any case, where there are as many.
        most: How many chunks are read at most.
        mean: Weight of the mean cosine of a chunk's sentences, beside 1 for its best one.
        names: Weight of the share of the question's names that a chunk holds.
        words: The same for its other words.
        missing: The same for those words that nothing that was read holds.
        title: Weight of a name of the question as the chunk's title, until a chunk with that title is read.
        linked_title: Weight of a name that was read as the chunk's title.
        linked_mention: Weight of such a name anywhere in the chunk.
        rarity: Power of a name's rarity.
        fading: What is left of an older reading's names with each new one.
        rest: What everything else counts for when names are followed.
        enough: Share of the first chunk's score below which nothing more is read.
    """

    tokens: int = 4_000
    least: int = 2
    most: int = 8
    mean: float = 1.5
    names: float = 0.4
    words: float = 0.4
    missing: float = 0.6
    title: float = 0.4
    linked_title: float = 0.8
    linked_mention: float = 0.1
    rarity: float = 1.5
    fading: float = 0.8
    rest: float = 0.5
    enough: float = 0.4


def moves(
    question: str,
    index: DocumentIndex,
    rules: Rules,
    *,
    interfaces: Collection[Interface] = ALL,
) -> Generator[Call, int, None]:
    """The calls for one question: each is yielded, and the retrieved tokens of its result are to be sent in.

    The rules see the scores of all chunks of a search, not of the first ``top_k`` alone; of texts they see those that
    were read. Reading is always one of the interfaces that may be called.

    Source: A-RAG (arXiv 2602.03442), Algorithm 1, with rules in the place of the language model.
    """
    board = _Board(question, index, rules)
    if "keyword_search" in interfaces and board.asked:
        board.spent += yield Call("keyword_search", {"keywords": board.asked, "top_k": 1})
        board.see_words()
    if "semantic_search" in interfaces:
        board.spent += yield Call("semantic_search", {"query": question, "top_k": 1})
        board.see_meaning()
    following = False
    while (chunk := board.best(following=following)) is not None:
        board.spent += yield Call("chunk_read", {"chunk_ids": [chunk]})
        news = board.take(chunk)
        if board.done:
            return
        if news and "keyword_search" in interfaces:
            board.spent += yield Call("keyword_search", {"keywords": news, "top_k": 1})
            board.follow(news)
        following = not following and "keyword_search" in interfaces


def asked_for(question: str) -> list[str]:
    """The key phrases of a question: its names, then its other content words."""
    return list(dict.fromkeys([*names(question), *content_words(question)]))


class _Board:
    """What is known so far about every chunk."""

    def __init__(self, question: str, index: DocumentIndex, rules: Rules) -> None:
        self.question, self.index, self.rules, self.ids = question, index, rules, index.lexicon.ids
        self.asked, self.read = asked_for(question), dict[str, str]()
        self.spent, self.first = 0, 0.0
        self._names, self._words = list(map(plain, names(question))), content_words(question)
        self._base: Scores = np.zeros(len(self.ids), np.float32)
        self._links: Scores = np.zeros(len(self.ids), np.float32)
        self._found: Words | None = None

    @property
    def done(self) -> bool:
        """Whether enough was read."""
        return len(self.read) >= self.rules.most or (
            len(self.read) >= self.rules.least and self.spent >= self.rules.tokens
        )

    def see_words(self) -> None:
        self._found = found = Words(self.index, self.asked)
        self._base += self.rules.names * found.coverage(self._names) + self.rules.words * found.coverage(self._words)

    def see_meaning(self) -> None:
        best, mean = meaning_of(self.index, self.question, self.ids)
        self._base += best + self.rules.mean * mean

    def follow(self, news: Sequence[str]) -> None:
        """Names that were read speak for the chunks that are about them."""
        self._links = np.maximum(self._links * self.rules.fading, Words(self.index, news).linked(self.rules))

    def best(self, *, following: bool) -> str | None:
        """The best chunk that was not read yet, if anything speaks for one."""
        scores = self._base + self._open()
        if following and self._links.any():
            scores = self._links + self.rules.rest * scores
        scores[[row for row, chunk in enumerate(self.ids) if chunk in self.read]] = 0
        best = float(scores.max(initial=0))
        if not self.read:
            self.first = best
        least = self.rules.enough * self.first if len(self.read) >= self.rules.least else 0
        return self.ids[int(scores.argmax())] if best > least else None

    def _open(self) -> Scores:
        """What still asks to be read about: names that are no title of what was read, words that are not in it."""
        found = self._found
        if found is None:
            return np.zeros(len(self.ids), np.float32)
        texts = list(map(plain, self.read.values()))
        titles = [plain(first_line(text)) for text in self.read.values()]
        names = [name for name in self._names if not any(name in title for title in titles)]
        words = [word for word in self._words if not any(word in text for text in texts)] if self.read else []
        return self.rules.title * found.titled(names) + self.rules.missing * found.coverage(words)

    def take(self, chunk_id: str) -> list[str]:
        """Notes what was read; gives the names in it that are news."""
        chunk = self.index.chunk(chunk_id)
        text = self.read[chunk_id] = chunk.text if chunk else ""
        return [name for name in names(text) if len(name) >= _LEAST_NAME and plain(name) not in self._names]


TOP_K = 5
COLUMNS = (
    "", "recall", "complete", "full - this, recall", "recall, tuning half", "recall, other half", "retrieved tokens",
    "of these snippets", "chunks read", "calls",
)  # fmt: skip
FULL = "A-RAG, all interfaces"
_ROUNDS = 6


class Played(NamedTuple):
    """What one method did for one question: the chunks whose whole text it got, all tokens and those of snippets."""

    read: tuple[str, ...]
    tokens: int
    snippets: int = 0
    calls: int = 1


Method = Callable[[str], Played]


def on_hotpotqa(data: Path) -> Mapping[str, object]:
    """The body of the results file for HotpotQA."""
    about = (
        "HotpotQA, distractor setting: 100 questions, their 1,000 paragraphs pooled. Recall: the share of a question's "
        "two supporting paragraphs that were read whole; complete: both. The rules stop at {} retrieved tokens; their "
        "weights were chosen on the even questions (tuning half), the odd ones are the other half. No language model"
    )
    return _measured(hotpotqa(data), Rules(tokens=600), about)


def on_medical(data: Path) -> Mapping[str, object]:
    """The body of the results file for GraphRAG-Bench medical."""
    about = (
        "GraphRAG-Bench, medical: the first 200,000 characters in chunks of about 1,000 tokens, and at most 100 of "
        f"the questions of which a chunk bears the answer: it holds {BEARING:.0%} of its words. Recall: the share of "
        "these words in what was read; complete: a chunk that bears the answer was read. The rules stop at {} "
        "retrieved tokens and are those of HotpotQA: nothing was tuned here, the halves are two samples. "
        "No language model"
    )
    return _measured(medical(data), Rules(tokens=4_000), about)


def _measured(opening: AbstractContextManager[Collected], rules: Rules, about: str) -> Mapping[str, object]:
    with opening as collected:
        questions = collected.questions
        played = {name: [play(q.text) for q in questions] for name, play in methods(collected, rules).items()}
    recalls = {
        name: [q.recall(one.read) for q, one in zip(questions, runs, strict=True)] for name, runs in played.items()
    }
    bootstrap = Bootstrap([str(place) for place in range(len(questions))])
    figures: dict[str, dict[str, Any]] = {}
    for name, runs in played.items():
        recall = recalls[name]
        values = {
            "recall": bootstrap.mean(recall),
            "complete": bootstrap.mean([q.complete(one.read) for q, one in zip(questions, runs, strict=True)]),
            "full_minus_this": bootstrap.difference(recalls[FULL], recall),
            "tokens": bootstrap.mean([one.tokens for one in runs]),
        }
        figures[name] = {
            **{key: asdict(value) for key, value in values.items()},
            "recall_even": float(np.mean(recall[::2])),
            "recall_odd": float(np.mean(recall[1::2])),
            "snippets": float(np.mean([one.snippets for one in runs])),
            "read": float(np.mean([len(one.read) for one in runs])),
            "calls": float(np.mean([one.calls for one in runs])),
        }
    return {
        "about": about.format(f"{rules.tokens:,}"),
        "columns": list(COLUMNS),
        "rows": [_row(name, found) for name, found in figures.items()],
        "n": len(questions),
        "methods": figures,
    }


def _row(name: str, found: Mapping[str, Any]) -> list[str]:
    return [
        name,
        cell(found["recall"]),
        cell(found["complete"]),
        "" if name == FULL else cell(found["full_minus_this"], "+.3f"),
        *(short(found[half]) for half in ("recall_even", "recall_odd")),
        f"{found['tokens']['mean']:,.0f}",
        f"{found['snippets']:,.0f}",
        f"{found['read']:.1f}",
        f"{found['calls']:.1f}",
    ]


def methods(collected: Collected, rules: Rules) -> Mapping[str, Method]:
    """Every method by name: the baselines, the loop by rules, and the loop without each interface."""
    index = collected.index
    chunks = list(index.chunks())
    matrix = collected.vectors.encode([chunk.text for chunk in chunks])

    def naive(question: str) -> Played:
        """One vector a chunk, the nearest five in one go."""
        best = np.argsort(-(matrix @ collected.vectors.encode([question])[0]), kind="stable")[:TOP_K]
        return Played(tuple(chunks[i].id for i in best), sum(estimated_tokens(chunks[i].text) for i in best))

    def read_at_once(question: str) -> Played:
        """A-RAG (Naive), section 4.1 of the paper: one tool, which searches by meaning and returns whole chunks."""
        found = semantic_search(index, question, top_k=TOP_K).hits
        reading = chunk_read(index, [hit.chunk for hit in found]) if found else Reading(())
        return Played(tuple(reading.read), reading.tokens)

    return {
        f"naive RAG, top {TOP_K} chunks": naive,
        f"A-RAG (Naive), top {TOP_K} by best sentence": read_at_once,
        FULL: lambda question: by_rules(index, question, rules),
        "without keyword search": lambda question: by_rules(index, question, rules, ("semantic_search", "chunk_read")),
        "without semantic search": lambda question: by_rules(index, question, rules, ("keyword_search", "chunk_read")),
        "without chunk read": lambda question: _without_reading(index, question, rules),
    }


def by_rules(index: DocumentIndex, question: str, rules: Rules, interfaces: Sequence[Interface] = ALL) -> Played:
    """The loop by rules, each call carried out."""
    playing = moves(question, index, rules, interfaces=interfaces)
    read: list[str] = []
    tokens = snippets = calls = 0
    call = next(playing, None)
    while call is not None:
        result: Hits | Reading
        if call.name == "keyword_search":
            result = keyword_search(index, call.args["keywords"], top_k=call.args["top_k"], sentences=1)
        elif call.name == "semantic_search":
            result = semantic_search(index, call.args["query"], top_k=call.args["top_k"], sentences=1)
        else:
            result = chunk_read(index, call.args["chunk_ids"])
        calls, tokens = calls + 1, tokens + result.tokens
        if isinstance(result, Reading):
            read += result.read
        else:
            snippets += result.tokens
        try:
            call = playing.send(result.tokens)
        except StopIteration:
            break
    return Played(tuple(read), tokens, snippets, calls)


def _without_reading(index: DocumentIndex, question: str, rules: Rules) -> Played:
    """The searches give whole chunks: in turn by words, by meaning, and by the names in what came."""
    read: dict[str, str] = {}
    keywords = asked_for(question)
    tokens = calls = 0
    for top_k in range(1, _ROUNDS):
        for found in (keyword_search(index, keywords, top_k=top_k), semantic_search(index, question, top_k=top_k)):
            reading = chunk_read(index, [hit.chunk for hit in found.hits], read=read) if found.hits else Reading(())
            read.update(reading.read)
            calls, tokens = calls + 1, tokens + reading.tokens
            if tokens >= rules.tokens and len(read) >= rules.least:
                return Played(tuple(read), tokens, calls=calls)
            keywords = [name for part in reading.parts for name in names(part.text)] or keywords
    return Played(tuple(read), tokens, calls=calls)
