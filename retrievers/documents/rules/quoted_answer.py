"""Answers without a language model: the sentences that cover the question, each with its chunk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from callsheet.retrievers.documents.indexing.document_index import DocumentIndex
from callsheet.retrievers.documents.rules.coverage import Need, Sentence, grounded, holds, joined, needs_of, share
from callsheet.retrievers.documents.rules.phrases import plain

NO_MODEL = "(Found by rules, without a language model: the sentences that fit best.)"
NOT_FOUND = "The documents do not answer this"
ENOUGH = 0.88
"""Minimum share of a question's needs for an answer, tuned on the even questions of HotpotQA."""
_SEARCHED = "(Searched by rules, without a language model.)"
_HEADING = re.compile(r"^#{1,6}\s+")
_MOST_NAMED = 8
_LEAST_STEM, _ENDING = 3, 3


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of an answer.

    Attributes:
        text: The sentence, white space as single spaces.
        chunk: Id of its chunk.
    """

    text: str
    chunk: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer from the documents, by rules.

    Attributes:
        quotes: The sentences that answer the question, best first; empty if it is not answered.
        coverage: The share of the question's needs that the best sentences cover, 0 to 1.
        missing: The needs that they do not cover, in the words of the question.
        complete: Whether all required needs are covered.
    """

    quotes: tuple[Quote, ...] = ()
    coverage: float = 0.0
    missing: tuple[str, ...] = ()
    complete: bool = False

    @property
    def text(self) -> str:
        """The quotes with citations, or a note that nothing answers the question; both say that no model was used."""
        if self.quotes:
            return "\n".join((*(f"{quote.text} [{quote.chunk}]" for quote in self.quotes), NO_MODEL))
        words = ", ".join(f'"{word}"' for word in self.missing[:_MOST_NAMED])
        why = f"what fits best says nothing of {words}" if words else "only headings hold its words"
        return f"{NOT_FOUND}: {why}. {_SEARCHED}"


def answer_from(question: str, index: DocumentIndex, chunk_ids: Sequence[str]) -> Answer:
    """The sentences of these chunks that together answer a question; none if they do not cover enough.

    Args:
        question: The question.
        index: The documents.
        chunk_ids: Ids of the chunks that were read.
    """
    needs = needs_of(question)
    chosen = joined(needs, list(_sentences(question, index, chunk_ids)), question)
    missing = [need for need in needs if not holds(chosen, need)]
    coverage = share(needs, chosen)
    complete = grounded(needs, chosen) and not any(need.required or _unknown(index, need) for need in missing)
    answered = complete and coverage >= ENOUGH
    quotes = tuple(Quote(one.text, one.chunk) for one in chosen) if answered else ()
    return Answer(quotes, coverage, tuple(need.text for need in missing), complete)


def _unknown(index: DocumentIndex, need: Need) -> bool:
    """Whether no document contains a word in any form; an answer must not ignore such a word."""
    stem = plain(need.text)
    stem = stem[: max(_LEAST_STEM, len(stem) - _ENDING)]
    return not len(index.lexicon.occurrences([stem])[stem].rows)


def _sentences(question: str, index: DocumentIndex, chunk_ids: Sequence[str]) -> Iterator[Sentence]:
    """The sentences of these chunks, with their headings and cosines with the question."""
    similar = index.similar(question, also=chunk_ids)
    place = {chunk: i for i, chunk in enumerate(similar.chunks)}
    for chunk_id in dict.fromkeys(chunk_ids):
        chunk = index.chunk(chunk_id)
        if chunk is None or chunk_id not in place:
            continue
        title = heading = ""
        for at in range(similar.starts[place[chunk_id]], similar.starts[place[chunk_id] + 1]):
            sentence = " ".join(chunk.passage.sentences[similar.places[at]].split())
            if mark := _HEADING.match(sentence):
                heading = sentence[mark.end() :]
                title = title or heading
                continue
            above = dict.fromkeys((_name_of(index, chunk_id), title, heading))
            yield Sentence(sentence, chunk_id, "\n".join(filter(None, above)), float(similar.sentences[at]))


def _name_of(index: DocumentIndex, chunk_id: str) -> str:
    """The names of a chunk's folders and file as words, without the ending."""
    file = chunk_id.rpartition("#")[0].rpartition(".")[0]
    return re.sub(r"[\W_]+", " ", f"{index.folder.name}/{file}").strip()
