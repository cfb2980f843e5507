"""The sentences of documents that fit a question best, with their citations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from callsheet.graphs.text.words import tokens
from callsheet.retrievers.documents.indexing.document_index import DocumentIndex

NOT_FOUND = "The documents do not answer this."
_HEADING = re.compile(r"^#{1,6}\s+")
_MOST = 3
_LEAST = 1 / 3
"""Minimum share of a question's words in a passage and the headings above it."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence, with what it stands under.

    Attributes:
        text: The sentence, white space as single spaces.
        chunk: Id of its chunk.
        heading: The nearest heading above it; empty without one.
        share: The share of the question's words in it and in its heading, 0 to 1.
        cosine: Its cosine with the question.
    """

    text: str
    chunk: str
    heading: str
    share: float
    cosine: float

    def __str__(self) -> str:
        """The sentence with its heading and its citation."""
        return f"{f'{self.heading}: ' if self.heading else ''}{self.text} [{self.chunk}]"


def best_passages(question: str, index: DocumentIndex, chunk_ids: Sequence[str]) -> list[Passage]:
    """The passages that hold most of a question's words, best first; none if all of them hold too few.

    Args:
        question: The question.
        index: The documents.
        chunk_ids: Ids of the chunks to quote from.
    """
    wanted = set(tokens(question))
    found = [one for one in _passages(question, wanted, index, chunk_ids) if one.share >= _LEAST]
    return sorted(found, key=lambda one: (-one.share, -one.cosine))[:_MOST]


def _passages(question: str, wanted: set[str], index: DocumentIndex, chunk_ids: Sequence[str]) -> Iterator[Passage]:
    similar = index.similar(question, also=chunk_ids)
    place = {chunk: i for i, chunk in enumerate(similar.chunks)}
    for chunk_id in dict.fromkeys(chunk_ids):
        if (chunk := index.chunk(chunk_id)) is None or chunk_id not in place or not wanted:
            continue
        heading = ""
        for at in range(similar.starts[place[chunk_id]], similar.starts[place[chunk_id] + 1]):
            text = " ".join(chunk.passage.sentences[similar.places[at]].split())
            if mark := _HEADING.match(text):
                heading = text[mark.end() :]
                continue
            share = len(wanted & {*tokens(f"{heading} {text}")}) / len(wanted)
            yield Passage(text, chunk_id, heading, share, float(similar.sentences[at]))
