"""A-RAG without a language model: which interface to call next, by rules.

Key phrases first, then meaning, then reading; from what was read to the names in it, for a second hop.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.documents.chunk_store import rarity
from callsheet.retrievers.documents.document_index import DocumentIndex
from callsheet.retrievers.documents.document_text import content_words, first_line, names, plain

Scores = NDArray[np.floating[Any]]
_COUNTED = 2


@dataclass(frozen=True, slots=True)
class Words:
    """The occurrences of keywords.

    Attributes:
        keys: The keywords, plain.
        rarity: ``(keys,)``, 1 for a keyword in one chunk, near 0 for one in nearly all chunks, 0 for one in none.
        held: ``(chunks, keys)``, number of occurrences in each chunk, up to 2, divided by 2.
        title: ``(chunks, keys)``, the share of the keyword in the chunk's title.
    """

    keys: tuple[str, ...]
    rarity: Scores
    held: Scores
    title: Scores

    def coverage(self, keys: Collection[str]) -> Scores:
        """``(chunks,)``, a chunk's share of these keywords, each weighted by its rarity, 0 to 1."""
        weights = np.where([key in keys for key in self.keys], self.rarity, 0.0)
        share: Scores = ((self.held > 0) @ weights / max(float(weights.sum()), 1e-9)).astype(np.float32)
        return share

    def titled(self, keys: Collection[str]) -> Scores:
        """``(chunks,)``, the share of the rarest of these keywords in a title, 0 to 1."""
        weights = np.where([key in keys for key in self.keys], self.rarity, 0.0)
        return _largest(self.title * weights)

    def linked(self, keys: Collection[str], *, title: float, mention: float, power: float) -> Scores:
        """``(chunks,)``, how far a chunk concerns the rarest of these keywords, by its title and its text."""
        weights = np.where([key in keys for key in self.keys], self.rarity**power, 0.0)
        return _largest((title * self.title + mention * self.held) * weights)


def words_of(index: DocumentIndex, keywords: Sequence[str]) -> Words:
    """The occurrences of these keywords in the chunks of ``index.lexicon.ids``."""
    keys = tuple(dict.fromkeys(filter(None, map(plain, keywords))))
    chunks = len(index.lexicon.ids)
    counts: Scores = np.zeros((chunks, len(keys)), np.float32)
    title: Scores = np.zeros((chunks, len(keys)), np.float32)
    occurrences = index.lexicon.occurrences(keys)
    for column, key in enumerate(keys):
        places = occurrences[key]
        counts[places.rows, column] = np.minimum(places.counts, _COUNTED) / _COUNTED
        title[places.rows, column] = places.titles
    rarities = [rarity(len(occurrences[key].rows), chunks) for key in keys]
    return Words(keys, np.array(rarities, np.float32), counts, title)


def meaning_of(index: DocumentIndex, query: str, ids: Sequence[str]) -> tuple[Scores, Scores]:
    """``(chunks,)`` twice: the cosine of each chunk's best sentence with a query, and the mean over its sentences."""
    similar = index.similar(query)
    place = {chunk: i for i, chunk in enumerate(similar.chunks)}
    best, mean = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.float32)
    if not similar.chunks:
        return best, mean
    means = np.add.reduceat(similar.sentences, similar.starts[:-1]) / np.diff(similar.starts)
    for row, chunk in enumerate(ids):
        if (i := place.get(chunk)) is not None:
            best[row], mean[row] = similar.scores[i], means[i]
    return best, mean


def _largest(values: Scores) -> Scores:
    """The largest value of each row; 0 for rows without any."""
    if not values.shape[1]:
        return np.zeros(len(values), np.float32)
    largest: Scores = values.max(axis=1).astype(np.float32)
    return largest


Interface = Literal["keyword_search", "semantic_search", "chunk_read", "search_and_read"]
ALL: tuple[Interface, ...] = ("keyword_search", "semantic_search", "chunk_read")
_LEAST_NAME = 4


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an interface.

    Attributes:
        name: Which one.
        args: Its arguments.
    """

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
    were read.

    Args:
        question: What is asked.
        index: The documents.
        rules: Weights and bounds.
        interfaces: Those that may be called; reading is always one of them.

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


@dataclass(slots=True)
class _Board:
    """What is known so far about every chunk."""

    question: str
    index: DocumentIndex
    rules: Rules
    ids: tuple[str, ...] = field(init=False)
    asked: list[str] = field(init=False)
    read: dict[str, str] = field(default_factory=dict)
    spent: int = 0
    first: float = 0
    _names: list[str] = field(init=False)
    _words: list[str] = field(init=False)
    _base: Scores = field(init=False)
    _links: Scores = field(init=False)
    _found: Words | None = None

    def __post_init__(self) -> None:
        self.ids = self.index.lexicon.ids
        self._names = list(map(plain, names(self.question)))
        self._words = content_words(self.question)
        self.asked = asked_for(self.question)
        self._base = np.zeros(len(self.ids), np.float32)
        self._links = np.zeros(len(self.ids), np.float32)

    @property
    def done(self) -> bool:
        """Whether enough was read."""
        return len(self.read) >= self.rules.most or (
            len(self.read) >= self.rules.least and self.spent >= self.rules.tokens
        )

    def see_words(self) -> None:
        self._found = found = words_of(self.index, self.asked)
        self._base += self.rules.names * found.coverage(self._names) + self.rules.words * found.coverage(self._words)

    def see_meaning(self) -> None:
        best, mean = meaning_of(self.index, self.question, self.ids)
        self._base += best + self.rules.mean * mean

    def follow(self, news: Sequence[str]) -> None:
        """Names that were read speak for the chunks that are about them."""
        rules, found = self.rules, words_of(self.index, news)
        new = found.linked(found.keys, title=rules.linked_title, mention=rules.linked_mention, power=rules.rarity)
        self._links = np.maximum(self._links * rules.fading, new)

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


def next_call(question: str, index: DocumentIndex, tokens: Sequence[int], rules: Rules | None = None) -> Call | None:
    """The call that comes after so many results of earlier ones; None when it is time to answer.

    Args:
        question: What is asked.
        index: The documents.
        tokens: The retrieved tokens of each result so far, in order.
        rules: Weights and bounds.
    """
    playing = moves(question, index, rules or Rules())
    try:
        call = next(playing)
        for spent in tokens:
            call = playing.send(spent)
    except StopIteration:
        return None
    return call
