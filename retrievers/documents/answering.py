"""An answer without a language model: the sentences that fit best, each with its chunk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from callsheet.retrievers.documents.evidence import words_of
from callsheet.retrievers.documents.index import DocumentIndex
from callsheet.retrievers.documents.phrases import content_words, names, plain

MOST_QUOTES = 3
NO_MODEL = "(Found by rules, without a language model: the sentences that fit best.)"
NOTHING = "The documents say nothing that fits this question. (Searched by rules, without a language model.)"
_LEAST_SCORE, _NEAR_BEST = 0.35, 0.7
_WORDS_WEIGHT, _KIND_WEIGHT = 0.6, 0.1
_ASKS_NUMBER = re.compile(r"\b(?:how (?:many|much|long|far|old|often|high|large)|when|what (?:time|year|date))\b", re.I)
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|where)\b", re.I)
_HEADING = re.compile(r"^#{1,6}\s")


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a chunk that fits a question.

    Attributes:
        text: The sentence, white space as single spaces.
        chunk: Id of its chunk.
        score: How well it fits: its cosine plus what its words add.
    """

    text: str
    chunk: str
    score: float


def quotes_of(question: str, index: DocumentIndex, chunk_ids: Sequence[str], *, most: int = MOST_QUOTES) -> list[Quote]:
    """The sentences of these chunks that fit a question best, best first; none that is far behind the best.

    Args:
        question: What is asked.
        index: The documents.
        chunk_ids: What was read.
        most: How many at most.
    """
    found = index.similar(question)
    place = {chunk: i for i, chunk in enumerate(found.chunks)}
    asked = content_words(question)
    weights = dict(zip(asked, words_of(index, asked).rarity.tolist(), strict=True))
    quotes: dict[str, Quote] = {}
    for chunk_id in chunk_ids:
        chunk = index.chunk(chunk_id)
        if chunk is None or chunk_id not in place:
            continue
        for at in range(found.starts[place[chunk_id]], found.starts[place[chunk_id] + 1]):
            sentence = " ".join(chunk.passage.sentences[found.places[at]].split())
            if not _HEADING.match(sentence):
                score = float(found.sentences[at]) + _added(question, sentence, weights)
                quotes.setdefault(plain(sentence), Quote(sentence, chunk_id, score))
    ranked = sorted(quotes.values(), key=lambda quote: -quote.score)[:most]
    least = max(_LEAST_SCORE, _NEAR_BEST * ranked[0].score) if ranked else 0
    return [quote for quote in ranked if quote.score >= least]


def answer_of(quotes: Sequence[Quote]) -> str:
    """The quotes as an answer with its citations, saying that no model was used."""
    if not quotes:
        return NOTHING
    return "\n".join((*(f"{quote.text} [{quote.chunk}]" for quote in quotes), NO_MODEL))


def _added(question: str, sentence: str, weights: dict[str, float]) -> float:
    """What the words of the question, and what it asks for, add to a sentence's score."""
    text = plain(sentence)
    total = sum(weights.values())
    held = sum(weight for word, weight in weights.items() if word in text) / total if total else 0.0
    kind = bool(_ASKS_NUMBER.search(question) and re.search(r"\d", sentence)) or bool(
        _ASKS_NAME.search(question) and any(plain(name) not in plain(question) for name in names(sentence)[1:])
    )
    return _WORDS_WEIGHT * held + _KIND_WEIGHT * kind
