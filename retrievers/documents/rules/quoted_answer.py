"""An answer without a language model: the sentences that account for the question, each with its chunk, or none."""

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
"""The share of a question's needs from which on it counts as answered, chosen on the even questions of HotpotQA."""
_SEARCHED = "(Searched by rules, without a language model.)"
_HEADING = re.compile(r"^#{1,6}\s+")
_MOST_NAMED = 8
_LEAST_STEM, _ENDING = 3, 3


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a chunk that belongs to an answer.

    Attributes:
        text: The sentence, white space as single spaces.
        chunk: Id of its chunk.
    """

    text: str
    chunk: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the documents say to a question, by rules.

    Attributes:
        quotes: The sentences that answer it, the best first; none where nothing does.
        coverage: The share of the question's needs that the best sentences account for, 0 to 1.
        missing: The needs that they leave out, as the question says them.
        complete: Whether none of these is one that is never left out.
    """

    quotes: tuple[Quote, ...] = ()
    coverage: float = 0.0
    missing: tuple[str, ...] = ()
    complete: bool = False

    @property
    def text(self) -> str:
        """The quotes with their citations, or that nothing answers the question; and that no model was used."""
        if self.quotes:
            return "\n".join((*(f"{quote.text} [{quote.chunk}]" for quote in self.quotes), NO_MODEL))
        words = ", ".join(f'"{word}"' for word in self.missing[:_MOST_NAMED])
        why = f"what fits best says nothing of {words}" if words else "only headings hold its words"
        return f"{NOT_FOUND}: {why}. {_SEARCHED}"


def answer_from(question: str, index: DocumentIndex, chunk_ids: Sequence[str]) -> Answer:
    """The sentences of these chunks that together account for a question; nothing where they leave out too much.

    Args:
        question: What is asked.
        index: The documents.
        chunk_ids: What was read.
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
    """Whether no document at all holds a word, in any of its forms: no answer leaves that out."""
    stem = plain(need.text)
    stem = stem[: max(_LEAST_STEM, len(stem) - _ENDING)]
    return not len(index.lexicon.occurrences([stem])[stem].rows)


def _sentences(question: str, index: DocumentIndex, chunk_ids: Sequence[str]) -> Iterator[Sentence]:
    """Every different sentence of these chunks, with its headings and its cosine with the question."""
    found = index.similar(question, also=chunk_ids)
    place = {chunk: i for i, chunk in enumerate(found.chunks)}
    for chunk_id in dict.fromkeys(chunk_ids):
        chunk = index.chunk(chunk_id)
        if chunk is None or chunk_id not in place:
            continue
        title = heading = ""
        for at in range(found.starts[place[chunk_id]], found.starts[place[chunk_id] + 1]):
            sentence = " ".join(chunk.passage.sentences[found.places[at]].split())
            if mark := _HEADING.match(sentence):
                heading = sentence[mark.end() :]
                title = title or heading
                continue
            above = dict.fromkeys((_name_of(index, chunk_id), title, heading))
            yield Sentence(sentence, chunk_id, "\n".join(filter(None, above)), float(found.sentences[at]))


def _name_of(index: DocumentIndex, chunk_id: str) -> str:
    """The names of a chunk's folders and file as words, without the ending."""
    file = chunk_id.rpartition("#")[0].rpartition(".")[0]
    return re.sub(r"[\W_]+", " ", f"{index.folder.name}/{file}").strip()
