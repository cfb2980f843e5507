"""Answers without a language model: which chunks to read for a question, and which of their sentences to quote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs.text.words import tokens
from callsheet.retrievers.documents.document_index import DocumentIndex
from callsheet.retrievers.documents.document_text import HEADING, content_words
from callsheet.retrievers.documents.interfaces import TOP_K
from callsheet.retrievers.documents.sentence_vectors import Similar

NOT_FOUND = "The documents do not answer this."
LONGEST_ANSWER = 1_500
"""Maximum number of characters of an answer, with headings and citations."""
_LEAST_SHARE = 1 / 3
"""Minimum share of a question's words in one of the sentences and the headings above it: else nothing answers it."""
_WORDS_WEIGHT = 0.5
"""Weight of the share of the question's words in a sentence, beside 1 for its cosine."""
_CHUNK_WEIGHT = 0.3
"""Weight of the score of the sentence's chunk, beside 1 for its cosine."""
_LEAST_OF_BEST = 0.5
"""Share of the best sentence's score, without its chunk's, below which a sentence is not quoted."""


@dataclass(frozen=True, slots=True)
class _Quote:
    """A sentence with its heading and its citation, and its share of the question's words.

    Attributes:
        own: Its score by itself.
        score: The same with that of its chunk.
    """

    text: str
    share: float
    own: float
    score: float


def best_chunks(question: str, index: DocumentIndex, *, top_k: int = TOP_K) -> list[str]:
    """Returns the ids of the chunks that fit a question best, by meaning and by words.

    The score of a chunk T is the sum of A-RAG's Eq. 3 and of the share of the question's words k that it contains,
    each weighted by its rarity in the documents::

        score(T) = max over its sentences s of cos(s, q) + sum of idf(k) over k in T / sum of idf(k) over all k
    """
    similar = index.similar(question)
    scores = _chunk_scores(question, index, similar)
    return [similar.chunks[at] for at in np.argsort(-scores, kind="stable")[:top_k]]


def best_passages(
    question: str, index: DocumentIndex, chunk_ids: Sequence[str], *, characters: int = LONGEST_ANSWER
) -> list[str]:
    """Returns the sentences of these chunks that fit a question best, with headings and citations, best first.

    The score of a sentence s of a chunk T, with ``words`` the share of the question's words in s and its heading::

        own(s) = cos(s, q) + 0.5 * words(s)
        score(s) = own(s) + 0.3 * score(T)

    Sentences whose own score is below half of the best one are left out, and those that would make the answer longer
    than ``characters``. The result is empty if no sentence contains a third of the question's words.
    """
    wanted = frozenset(tokens(question))
    if not wanted:
        return []
    quotes = _quotes(question, wanted, index, dict.fromkeys(chunk_ids))
    if max((quote.share for quote in quotes), default=0.0) < _LEAST_SHARE:
        return []
    # The sort is stable, so equal ones stay in the order of the chunks.
    quotes.sort(key=lambda quote: -quote.score)
    least = _LEAST_OF_BEST * max(quote.own for quote in quotes)
    shown: list[str] = []
    left = characters + 1  # the last line has no line break
    for quote in quotes:
        size = len(quote.text) + 1
        if quote.own >= least and size <= left:
            shown.append(quote.text)
            left -= size
    return shown


def _quotes(question: str, wanted: frozenset[str], index: DocumentIndex, chunk_ids: dict[str, None]) -> list[_Quote]:
    """Returns the sentences of these chunks, without headings, in the order of the chunks."""
    similar = index.similar(question)
    place_of = {chunk: place for place, chunk in enumerate(similar.chunks)}
    chunk_scores = _chunk_scores(question, index, similar)
    quotes: list[_Quote] = []
    for chunk_id in chunk_ids:
        chunk = index.chunk(chunk_id)
        if chunk is None or chunk_id not in place_of:
            continue
        place = place_of[chunk_id]
        of_chunk = _CHUNK_WEIGHT * float(chunk_scores[place])
        heading = ""
        for at in range(similar.starts[place], similar.starts[place + 1]):
            text = " ".join(chunk.passage.sentences[similar.places[at]].split())
            mark = HEADING.match(text)
            if mark:
                heading = text[mark.end() :]
                continue
            share = len(wanted & {*tokens(f"{heading} {text}")}) / len(wanted)
            own = float(similar.sentences[at]) + _WORDS_WEIGHT * share
            quote = f"{heading}: {text} [{chunk_id}]" if heading else f"{text} [{chunk_id}]"
            quotes.append(_Quote(quote, share, own, own + of_chunk))
    return quotes


def _chunk_scores(question: str, index: DocumentIndex, similar: Similar) -> NDArray[np.float32]:
    """Returns the score of each chunk for ``best_chunks``, ``(chunks,) float32``."""
    shares = index.lexicon.shares(content_words(question))
    by_words = np.array([shares.get(chunk, 0.0) for chunk in similar.chunks], np.float32)
    scores: NDArray[np.float32] = similar.scores + by_words
    return scores
