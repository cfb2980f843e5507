"""The three interfaces of A-RAG as plain functions: search by words, search by meaning, read.

Source: A-RAG (arXiv 2602.03442), section 3.2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from heapq import nsmallest

import numpy as np

from callsheet.graphs import SettingsError
from callsheet.graphs.text.arguments import listed
from callsheet.retrievers.documents.indexing.chunk_store import Chunk, split_id
from callsheet.retrievers.documents.indexing.document_index import DocumentIndex
from callsheet.retrievers.documents.interface_results import Hit, Hits, Part, Reading
from callsheet.retrievers.documents.phrases import plain

TOP_K, MOST_HITS = 5, 20
MOST_KEYWORDS, MOST_READ, MOST_NEIGHBOURS = 50, 10, 2
SENTENCES, SNIPPET = 3, 160
_SPACE = re.compile(r"\s+")


def keyword_search(
    index: DocumentIndex, keywords: str | Sequence[str], *, top_k: int = TOP_K, sentences: int = SENTENCES
) -> Hits:
    """The chunks that contain these keywords exactly, in any case.

    A chunk's score is the sum of ``count(k, T) * |k|`` over the keywords, so that longer ones have more weight; its
    snippets are the sentences with a keyword. White space and canonical Unicode forms are normalized.

    Args:
        index: The documents.
        keywords: Words or short phrases, at most 50.
        top_k: Number of chunks, 1 to 20.
        sentences: Maximum number of snippets per chunk.

    Source: A-RAG (arXiv 2602.03442), section 3.2, Eq. 1 and 2.

    Raises:
        SettingsError: There is no keyword, or ``top_k`` is less than 1.
    """
    by_key = {key: word for word in listed(keywords) if (key := plain(word))}
    if not by_key:
        raise SettingsError("keyword_search needs at least one keyword: a word or a short phrase")
    first = dict(list(by_key.items())[:MOST_KEYWORDS])
    limit, note = _limited(top_k)

    lexicon = index.lexicon
    scores: Counter[int] = Counter()
    for key, places in lexicon.occurrences(list(first)).items():
        scores.update(dict(zip(places.rows.tolist(), (places.counts * len(key)).tolist(), strict=True)))
    best = nsmallest(limit, ((-score, row) for row, score in scores.items()))
    if len(first) < len(by_key):
        note = _joined(note, f"only the first {MOST_KEYWORDS} keywords were looked for")
    if not best:
        note = _joined(note, _nothing(index, f"no chunk holds {' or '.join(first.values())}; try other words"))
    chunks = ((index.chunk(lexicon.ids[row]), -score) for score, row in best)
    return Hits(tuple(_keyword_hit(chunk, score, first, sentences) for chunk, score in chunks if chunk), note)


def semantic_search(index: DocumentIndex, query: str, *, top_k: int = TOP_K, sentences: int = SENTENCES) -> Hits:
    """The chunks with the sentences nearest in meaning.

    A chunk's score is the cosine of its best sentence. Its snippets are this sentence and those of its others that are
    among the ``3 * top_k`` best of all.

    Args:
        index: The documents.
        query: The query in plain language.
        top_k: Number of chunks, 1 to 20.
        sentences: Maximum number of snippets per chunk.

    Source: A-RAG (arXiv 2602.03442), section 3.2, Eq. 3.

    Raises:
        SettingsError: The query is empty, or ``top_k`` is less than 1.
    """
    if not isinstance(query, str) or not query.strip():
        raise SettingsError("semantic_search needs a query: say in a few words what is looked for")
    limit, note = _limited(top_k)
    similar = index.similar(query)
    least = np.sort(similar.sentences)[-3 * limit :][:1]
    hits = []
    for place in np.argsort(-similar.scores, kind="stable")[:limit]:
        chunk = index.chunk(similar.chunks[place])
        if chunk is None:  # another process has updated the index
            continue
        own = slice(similar.starts[place], similar.starts[place + 1])
        cosines, places = similar.sentences[own], similar.places[own]
        best = np.argsort(-cosines, kind="stable")[:sentences]
        relevant = [int(places[i]) for i in best[:1]] + [int(places[i]) for i in best[1:] if cosines[i] >= least[0]]
        snippets = tuple(_abbreviated(chunk.passage.sentences[i]) for i in sorted(relevant))
        hits.append(Hit(chunk.id, float(similar.scores[place]), snippets))
    if not hits:
        note = _joined(note, _nothing(index, "nothing was found"))
    return Hits(tuple(hits), note)


def chunk_read(
    index: DocumentIndex, chunk_ids: str | Sequence[str], *, neighbours: int = 0, read: Mapping[str, str] | None = None
) -> Reading:
    """The whole text of chunks, without those that were read before.

    Args:
        index: The documents.
        chunk_ids: Ids from searches; at most 10 chunks are read at once.
        neighbours: Number of chunks to read before and after each, 0 to 2.
        read: The context tracker: id -> digest of each chunk that was read. A chunk with a new text is read again.

    Source: A-RAG (arXiv 2602.03442), section 3.2, chunk read and context tracker.

    Raises:
        SettingsError: No id is given, or ``neighbours`` is not 0, 1 or 2.
    """
    chunk_ids = listed(chunk_ids)
    if not chunk_ids:
        raise SettingsError("chunk_read needs at least one chunk id, as the searches give it")
    if not 0 <= neighbours <= MOST_NEIGHBOURS:
        raise SettingsError(f"neighbours must be between 0 and {MOST_NEIGHBOURS}, not {neighbours}")
    ids = list(dict.fromkeys(one for chunk_id in chunk_ids for one in _around(index, bare_id(chunk_id), neighbours)))
    note = ""
    if len(ids) > MOST_READ:
        note = f"{MOST_READ} chunks at once are the most; not read: {', '.join(ids[MOST_READ : 2 * MOST_READ])}"
    return Reading(tuple(_part(index, chunk_id, read or {}) for chunk_id in ids[:MOST_READ]), note)


def search_and_read(
    index: DocumentIndex, query: str, *, top_k: int = TOP_K, read: Mapping[str, str] | None = None
) -> Reading:
    """The whole text of the chunks nearest in meaning: the one tool of Naive A-RAG, and naive RAG if called once.

    Args:
        index: The documents.
        query: The query.
        top_k: Number of chunks, 1 to 10.
        read: As in ``chunk_read``.

    Source: A-RAG (arXiv 2602.03442), section 4.1, A-RAG (Naive).

    Raises:
        SettingsError: As ``semantic_search``.
    """
    result = semantic_search(index, query, top_k=top_k)
    if not result.hits:
        return Reading((), result.note)
    return chunk_read(index, [hit.chunk for hit in result.hits], read=read)


def bare_id(chunk_id: str) -> str:
    """A chunk's id without the brackets and spaces that models may add."""
    return str(chunk_id).strip().removeprefix("[").removesuffix("]").strip()


def _limited(top_k: int) -> tuple[int, str]:
    if top_k < 1:
        raise SettingsError(f"top_k must be at least 1, not {top_k}")
    return min(top_k, MOST_HITS), f"top_k is {MOST_HITS} at most" if top_k > MOST_HITS else ""


def _keyword_hit(chunk: Chunk, score: float, keywords: Mapping[str, str], sentences: int) -> Hit:
    text = plain(chunk.text)
    contained = [key for key in keywords if key in text]
    snippets: list[str] = []
    for sentence in chunk.passage.sentences:
        if len(snippets) >= sentences:
            break
        plain_sentence = plain(sentence)
        if any(key in plain_sentence for key in contained):
            snippets.append(_abbreviated(sentence, contained))
    return Hit(chunk.id, score, tuple(snippets), tuple(keywords[key] for key in contained))


def _abbreviated(sentence: str, keys: Sequence[str] = ()) -> str:
    """A sentence of at most 160 characters, cut around the first keyword."""
    text = _SPACE.sub(" ", sentence).strip()
    if len(text) <= SNIPPET:
        return text
    folded = text.casefold()
    first = min((at for key in keys if (at := folded.find(key)) >= 0), default=0)
    start = max(0, min(first - SNIPPET // 4, len(text) - SNIPPET))
    return ("…" if start else "") + text[start : start + SNIPPET].strip() + ("…" if start + SNIPPET < len(text) else "")


def _around(index: DocumentIndex, chunk_id: str, neighbours: int) -> list[str]:
    file, number = split_id(chunk_id) or (chunk_id, 0)
    last = index.last_number(file) if neighbours and number else 0
    if not 1 <= number <= last:
        return [chunk_id]
    return [f"{file}#{n}" for n in range(max(1, number - neighbours), min(last, number + neighbours) + 1)]


def _part(index: DocumentIndex, chunk_id: str, read: Mapping[str, str]) -> Part:
    chunk = index.chunk(chunk_id)
    if chunk is None:
        return Part(chunk_id, note=f"there is no such chunk{_near(index, chunk_id)}")
    if read.get(chunk_id) == chunk.digest:
        return Part(chunk_id, digest=chunk.digest, note="you have read this chunk before")
    return Part(chunk_id, chunk.text, chunk.digest, page=chunk.passage.page)


def _near(index: DocumentIndex, chunk_id: str) -> str:
    file, _ = split_id(chunk_id) or (chunk_id, 0)
    if last := index.last_number(file):
        return f": {file} has the chunks 1 to {last}"
    near = get_close_matches(file, index.files(), n=2)
    return f": did you mean {' or '.join(f'{name}#1' for name in near)}?" if near else ": take ids from a search"


def _nothing(index: DocumentIndex, why: str) -> str:
    return why if index.files() else f"there is no document in {index.folder.name or index.folder}"


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))
