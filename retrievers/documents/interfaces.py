"""The interfaces of A-RAG as functions and as LangChain tools: search by words, search by meaning, and reading.

Source: A-RAG (arXiv 2602.03442), section 3.2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import accumulate
from typing import Annotated, Any

import numpy as np
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from callsheet.graphs import SettingsError
from callsheet.graphs.text.arguments import as_texts
from callsheet.graphs.text.messages import counted
from callsheet.graphs.trust.policy import READ_ONLY
from callsheet.retrievers.documents.document_index import DocumentIndex
from callsheet.retrievers.documents.document_text import HEADING, Chunk, estimated_tokens, plain


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk in a search result.

    Attributes:
        score: Its score (Eq. 1 or 3).
        snippets: Its matching sentences (Eq. 2); none of a chunk that was read before.
        keywords: The keywords in it.
        heading: The heading above the first snippet, which says what it is about; empty if there is none, and if it is
            a snippet itself.
        was_read: Whether its text was read before.
    """

    chunk: str
    score: float
    snippets: tuple[str, ...]
    keywords: tuple[str, ...] = ()
    heading: str = ""
    was_read: bool = False

    def __str__(self) -> str:
        """Returns the text for a model."""
        keywords = f" holds {', '.join(self.keywords)}" if self.keywords else ""
        if self.was_read:
            return f"[{self.chunk}]{keywords} (you have read this chunk before)"
        if not self.snippets:
            return f"[{self.chunk}]{keywords}: (no single sentence holds a keyword)"
        shown = [self.heading, *self.snippets] if self.heading else self.snippets
        return f"[{self.chunk}]{keywords}: {' … '.join(shown)}"


@dataclass(frozen=True, slots=True)
class Hits:
    """The result of a search: chunks, best first, and a note if nothing matched or if the search was incomplete."""

    hits: tuple[Hit, ...]
    note: str = ""

    @property
    def tokens(self) -> int:
        """Returns the number of tokens of the result."""
        return sum(estimated_tokens(text) for hit in self.hits for text in (hit.heading, *hit.snippets))

    def __str__(self) -> str:
        """Returns the text for a model."""
        return "\n".join((*map(str, self.hits), *([f"({self.note})"] if self.note else [])))


@dataclass(frozen=True, slots=True)
class Part:
    """One chunk of a reading: its text or the reason why there is none, its hash, and its page."""

    chunk: str
    text: str = ""
    digest: str = ""
    note: str = ""
    page: int | None = None

    def __str__(self) -> str:
        """Returns the text for a model."""
        if not self.text:
            return f"[{self.chunk}] ({self.note})"
        where = f" (page {self.page})" if self.page else ""
        return f"[{self.chunk}]{where}\n{self.text}".rstrip()


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading chunks, in the requested order."""

    parts: tuple[Part, ...]

    @property
    def read(self) -> dict[str, str]:
        """Returns the update for the context tracker: the id and digest of every chunk of the reading with a text."""
        return {part.chunk: part.digest for part in self.parts if part.text}

    @property
    def tokens(self) -> int:
        """Returns the number of tokens of the result."""
        return sum(estimated_tokens(part.text) for part in self.parts)

    def __str__(self) -> str:
        """Returns the text for a model."""
        return "\n\n".join(map(str, self.parts))


TOP_K = 5
MOST_HITS = 20
MOST_KEYWORDS = 50
MOST_READ = 10
SNIPPETS = 1_000
"""Default number of estimated tokens of the sentences that one search shows, which is the size of one chunk."""
_SPACE = re.compile(r"\s+")
_ADDED = "[] \t\n"  # what models add to an id


def keyword_search(
    index: DocumentIndex,
    keywords: str | Sequence[str],
    *,
    top_k: int = TOP_K,
    snippets: int = SNIPPETS,
    read: Mapping[str, str] | None = None,
) -> Hits:
    """Finds the chunks that contain these keywords exactly, in any case.

    A chunk's score is the sum of ``count(k, T) * |k|`` over the keywords, with its length in characters, so that longer
    ones have more weight; its snippets are the sentences with a keyword. White space and canonical Unicode forms are
    normalized. The note names the keywords that none of the found chunks contains.

    Args:
        index: The documents.
        keywords: Words or short phrases.
        top_k: Number of chunks.
        snippets: Estimated tokens of all snippets; each of ``top_k`` chunks has its share, and shows one in any case.
        read: The context tracker, as in ``chunk_read``; of a chunk in it, no snippets are shown.

    Source: A-RAG, Eq. 1 and 2.

    Raises:
        SettingsError: There is no keyword, or more than 50, or ``top_k`` is not 1 to 20.
    """
    words: dict[str, str] = {}
    for word in as_texts(keywords):
        key = plain(word)
        if key:
            words[key] = word
    if not 0 < len(words) <= MOST_KEYWORDS:
        raise SettingsError(f"keyword_search needs at least one keyword and takes {MOST_KEYWORDS}, not {len(words)}")
    _check(top_k)
    lexicon = index.lexicon
    scores: Counter[int] = Counter()
    chunks_with: dict[str, int] = {}
    for key, occurrences in lexicon.occurrences(list(words)).items():
        chunks_with[words[key]] = len(occurrences.rows)
        for row, count in zip(occurrences.rows.tolist(), occurrences.counts.tolist(), strict=True):
            scores[row] += count * len(key)
    best = nsmallest(top_k, scores, key=lambda row: (-scores[row], row))
    hits = []
    for row in best:
        chunk = index.chunk(lexicon.ids[row])
        if chunk is not None:  # None if another process has updated the index
            hits.append(_keyword_hit(chunk, scores[row], words, snippets // top_k, read or {}))
    shown = {keyword for hit, _ in hits for keyword in hit.keywords}
    others = {keyword: count for keyword, count in chunks_with.items() if keyword not in shown}
    return _found(index, hits, f"no chunk holds {' or '.join(words.values())}; try other words", _about_others(others))


def _about_others(chunks_with: Mapping[str, int]) -> str:
    """Returns a note on the keywords that are in none of the chunks found, with how many chunks have each."""
    absent = [keyword for keyword, count in chunks_with.items() if not count]
    elsewhere = [f"{keyword} ({counted(count, 'chunk')})" for keyword, count in chunks_with.items() if count]
    notes: list[str] = []
    if absent:
        notes.append(f"no chunk holds {' or '.join(absent)}")
    if elsewhere:
        notes.append(f"only in chunks that are not shown: {', '.join(elsewhere)}; search for it alone")
    return "; ".join(notes)


def _keyword_hit(
    chunk: Chunk, score: int, words: Mapping[str, str], most: int, read: Mapping[str, str]
) -> tuple[Hit, int]:
    """Returns a hit of a keyword search with the sentences that contain a keyword; ``words`` are by plain keyword."""
    text = plain(chunk.text)
    keys = [key for key in words if key in text]
    places = []
    for place, sentence in enumerate(map(plain, chunk.passage.sentences)):
        if any(key in sentence for key in keys):
            places.append(place)
    return _hit(chunk, score, places, most, read, *(words[key] for key in keys))


def semantic_search(
    index: DocumentIndex,
    query: str,
    *,
    top_k: int = TOP_K,
    snippets: int = SNIPPETS,
    read: Mapping[str, str] | None = None,
) -> Hits:
    """Finds the chunks with the sentences nearest in meaning.

    A chunk's score is the cosine of its best sentence. Its snippets are this sentence and those of its others that are
    among the ``3 * top_k`` best of all. If the index does not have the vectors of all sentences, only those of
    preselected chunks are compared, and the note says so.

    The arguments are those of ``keyword_search``.

    Source: A-RAG, Eq. 3.

    Raises:
        SettingsError: The query is empty, or ``top_k`` is not 1 to 20.
    """
    if not isinstance(query, str) or not query.strip():
        raise SettingsError("semantic_search needs a query: say in a few words what you search for")
    _check(top_k)
    similar = index.similar(query)
    least = np.sort(similar.sentences)[-3 * top_k :][:1]
    hits = []
    for at in np.argsort(-similar.scores, kind="stable")[:top_k]:
        chunk = index.chunk(similar.chunks[at])
        if chunk is not None:  # None if another process has updated the index
            own = slice(similar.starts[at], similar.starts[at + 1])
            cosines = similar.sentences[own]
            places = similar.places[own]
            order = np.argsort(-cosines, kind="stable")
            best = [int(places[i]) for i in order if i == order[0] or cosines[i] >= least[0]]
            hits.append(_hit(chunk, float(similar.scores[at]), best, snippets // top_k, read or {}))
    note = ""
    if similar.compared < len(similar.chunks):
        of = f"{similar.compared:,} of {len(similar.chunks):,} chunks"
        note = f"compared with the sentences of {of}, preselected; keyword_search looks through all"
    return _found(index, hits, "nothing was found", note)


def chunk_read(
    index: DocumentIndex, chunk_ids: str | Sequence[str], *, read: Mapping[str, str] | None = None
) -> Reading:
    """Reads the whole text of chunks; chunks that were read before are not repeated.

    Args:
        index: The documents.
        chunk_ids: Ids from searches.
        read: The context tracker: id -> digest of each chunk that was read. A chunk with a new text is read again.

    Source: A-RAG, chunk read and context tracker.

    Raises:
        SettingsError: No id is given, or more than 10.
    """
    ids = list(dict.fromkeys(str(chunk_id).strip(_ADDED) for chunk_id in as_texts(chunk_ids)))
    if not 0 < len(ids) <= MOST_READ:
        raise SettingsError(f"chunk_read needs at least one chunk id and takes {MOST_READ} at once, not {len(ids)}")
    return Reading(tuple(_part(index, chunk_id, read or {}) for chunk_id in ids))


def _check(top_k: int) -> None:
    if not 1 <= top_k <= MOST_HITS:
        raise SettingsError(f"top_k must be 1 to {MOST_HITS}, not {top_k}")


def _hit(
    chunk: Chunk, score: float, places: Sequence[int], most: int, read: Mapping[str, str], *keywords: str
) -> tuple[Hit, int]:
    """Returns a hit with its first matching sentences within a budget of tokens, and how many are not shown.

    The first is shown in any case; they come in the order of the chunk.
    """
    if read.get(chunk.id) == chunk.digest:
        return Hit(chunk.id, score, (), keywords, was_read=True), 0
    texts = [_SPACE.sub(" ", sentence) for sentence in chunk.passage.sentences]
    totals = list(accumulate(estimated_tokens(texts[place]) for place in places))
    count = sum(total <= max(most, totals[0]) for total in totals)
    shown = sorted(places[:count])
    heading = _heading_above(shown[0], texts) if shown else ""
    hit = Hit(chunk.id, score, tuple(texts[place] for place in shown), keywords, heading)
    return hit, len(places) - count


def _heading_above(place: int, texts: Sequence[str]) -> str:
    """Returns the nearest heading above a sentence of a chunk; empty if there is none, or if it is one itself."""
    if HEADING.match(texts[place]):
        return ""
    return next((text for text in reversed(texts[:place]) if HEADING.match(text)), "")


def _found(index: DocumentIndex, hits: Sequence[tuple[Hit, int]], nothing: str, note: str = "") -> Hits:
    if not hits and not index.files():
        return Hits((), f"there is no document in {index.folder.name or index.folder}")
    if not hits:
        return Hits((), nothing)
    notes = [note] if note else []
    left = sum(left for _, left in hits)
    if left:
        notes.append(f"{counted(left, 'more matching sentence')} not shown: read the chunks")
    return Hits(tuple(hit for hit, _ in hits), "; ".join(notes))


def _part(index: DocumentIndex, chunk_id: str, read: Mapping[str, str]) -> Part:
    chunk = index.chunk(chunk_id)
    if chunk is None:
        return Part(chunk_id, note="there is no such chunk: take ids from a search")
    if read.get(chunk_id) == chunk.digest:
        return Part(chunk_id, digest=chunk.digest, note="you have read this chunk before")
    return Part(chunk_id, chunk.text, chunk.digest, page=chunk.passage.page)


Keywords = Annotated[
    list[str], Field(description=f"Names, terms or phrases of one to three words, at most {MOST_KEYWORDS}.")
]
Many = Annotated[int, Field(description=f"How many chunks, 1 to {MOST_HITS}.")]
Sought = Annotated[str, Field(description="What is looked for, as a question or a statement.")]
Ids = Annotated[list[str], Field(description=f"Ids as the searches give them, at most {MOST_READ}.")]
Result = tuple[str, dict[str, Any]]


@dataclass
class DocumentTools:
    """The three interfaces to one index as tools, for one conversation.

    Each tool returns a text, and as artifact ``{"tokens": retrieved tokens, "chunks": [ids of chunks read now or
    before], "read": {id: digest of those read now}}``. It raises a ``ToolException`` where the function raises a
    ``SettingsError``.

    Attributes:
        index: The documents.
        read: The context tracker, which ``chunk_read`` updates.
        descriptions: Name of a tool -> description for the model, in place of ours.
    """

    index: DocumentIndex
    read: dict[str, str] = field(default_factory=dict, kw_only=True)
    descriptions: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def keyword_search(self, keywords: Keywords, top_k: Many = TOP_K) -> Result:
        """Find chunks that hold these words to the letter, in any case; longer keywords count more. Gives chunk ids with the sentences that hold a keyword, not whole chunks. Best for names, numbers and terms; give several short keywords rather than a sentence."""  # noqa: E501 (models read it in one line)
        return self._result(lambda: keyword_search(self.index, keywords, top_k=top_k, read=self.read))

    def semantic_search(self, query: Sought, top_k: Many = TOP_K) -> Result:
        """Find chunks by meaning, where the words of the documents are not known. Gives chunk ids with the sentences nearest to the query, not whole chunks."""  # noqa: E501 (models read it in one line)
        return self._result(lambda: semantic_search(self.index, query, top_k=top_k, read=self.read))

    def chunk_read(self, chunk_ids: Ids) -> Result:
        """Read chunks whole, before you answer from them. Where a text begins or ends too early, also read the chunk with the number before or after it. A chunk that you have read before is not shown again."""  # noqa: E501 (models read it in one line)
        return self._result(lambda: chunk_read(self.index, chunk_ids, read=self.read))

    def as_tools(self) -> list[BaseTool]:
        """Returns the three interfaces as LangChain tools."""
        return [
            StructuredTool.from_function(
                function,
                description=self.descriptions.get(function.__name__, function.__doc__),
                response_format="content_and_artifact",
                metadata={"annotations": dict(READ_ONLY)},
            )
            for function in (self.keyword_search, self.semantic_search, self.chunk_read)
        ]

    def _result(self, search: Callable[[], Hits | Reading]) -> Result:
        try:
            result = search()
        except SettingsError as error:
            raise ToolException(str(error)) from error
        reading = result if isinstance(result, Reading) else Reading(())
        self.read.update(reading.read)
        chunks = [part.chunk for part in reading.parts if part.digest]
        return str(result), {"tokens": result.tokens, "chunks": chunks, "read": reading.read}
