"""A-RAG without a language model: which interface to call next, by rules, and what is read for each retrieved token.

Key phrases first, then meaning, then reading; from what was read to the names in it, for a second hop.
"""

from __future__ import annotations

import json
import re
import string
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.bootstrap import Bootstrap, cell, short
from benchmarks.search import vectors_of_this_run
from callsheet.retrievers.documents import DocumentIndex, Hits, Reading, chunk_read, estimated_tokens
from callsheet.retrievers.documents.document_text import plain, rarity
from callsheet.retrievers.documents.interfaces import keyword_search, semantic_search

Scores = NDArray[np.floating[Any]]
ALL = ("keyword_search", "semantic_search", "chunk_read")
BEARING = 0.75
"""The share of an answer's content words that a chunk must hold to bear it."""
_PART, _MOST, _LEAST_WORDS, _COUNTED = 200_000, 100, 2, 2
_LEAST_NAME, _LEAST_FOLLOWED, _LONGEST_NAME = 2, 4, 60
_JOINING = r"(?:of|the|and|de|la|von|van|der|du|&)"
_CAPITAL = r"(?:(?:[A-Z]\.)+|[^\W\d_a-zß-ÿа-я][\w'’&-]*(?:\.\w+)*|\d[\w.,'’-]*\w|\d)"
_NAME = re.compile(rf"\"[^\"\n]{{2,60}}\"|“[^”\n]{{2,60}}”|{_CAPITAL}(?:[ \t]+(?:{_JOINING}[ \t]+){{0,2}}{_CAPITAL})*")
_NO_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_EDGE = " .,?!;:'\"“”‘’"
_WORD = re.compile(r"[^\W_]+")
_LEAST_KEYWORD = 4
_STOP_WORDS = frozenset(
    """
    a about after all also although an and another any are as at be because been before being between both but by
    can could did do does during each every for from had has have he her hers him his how however i if in into is it
    its itself just many me more most much my no nor not of off on once only or other our out over own same several
    she should since so some such than that the their them then there these they this those through to too under
    until up very was we were what when where which while who whom whose why will with would you your
    """.split()
)
"""Words that the rules, whose weights were chosen with these, take for no keyword: a model would not either."""


class Question(NamedTuple):
    """A question; from the chunks read, the share of what is needed, and whether it is complete.

    Attributes:
        answers: Its short answers.
        words: The content words of its long answer, if it has no short one.
    """

    text: str
    recall: Callable[[Collection[str]], float]
    complete: Callable[[Collection[str]], bool]
    answers: Sequence[str] = ()
    words: Sequence[str] = ()

    def contained(self, text: str) -> float:
        """How much of the answer a text contains, 0 to 1: a short answer whole or not, of a long one its words."""
        if self.words:
            return word_share(self.words, plain(text))
        return float(contains(text, self.answers))


Collected = tuple[DocumentIndex, Sequence[Question]]
Paragraphs = Mapping[tuple[str, str], bool]
"""By title and text, whether a paragraph supports its question."""


def hotpotqa(data: Path) -> AbstractContextManager[Collected]:
    """The paragraphs of 100 questions pooled into one collection, a paragraph a document; two support each question.

    Source: Yang et al., HotpotQA (EMNLP 2018), distractor setting, CC BY-SA 4.0.
    """

    def paragraphs(one: Any) -> Paragraphs:
        return {(title, "".join(text)): title in dict(one["supporting_facts"]) for title, text in one["context"]}

    return _pooled(data / "hotpotqa" / "distractor_sample_100.json", paragraphs)


def musique(data: Path) -> AbstractContextManager[Collected]:
    """The same of 100 questions of MuSiQue; two to four paragraphs support each.

    Source: Trivedi et al., MuSiQue (TACL 2022), CC BY 4.0; the file is ``data/musique_train.json`` in the branch
    ``legacy`` of github.com/OSU-NLP-Group/HippoRAG, MIT.
    """

    def paragraphs(one: Any) -> Paragraphs:
        return {(part["title"], part["paragraph_text"]): part["is_supporting"] for part in one["paragraphs"]}

    return _pooled(data / "musique" / "musique_train.json", paragraphs)


@contextmanager
def _pooled(path: Path, paragraphs_of: Callable[[Any], Paragraphs]) -> Iterator[Collected]:
    file_of, questions = dict[tuple[str, str], str](), list[Question]()
    for one in json.loads(path.read_text(encoding="utf-8")):
        paragraphs = paragraphs_of(one)
        names = [file_of.setdefault(paragraph, f"{len(file_of):04}.md") for paragraph in paragraphs]
        files = {name for name, supports in zip(names, paragraphs.values(), strict=True) if supports}

        def share(chunks: Collection[str], files: Collection[str] = files) -> float:
            return len({chunk.rpartition("#")[0] for chunk in chunks} & set(files)) / len(files)

        answers = [] if one["answer"] in ("yes", "no") else [one["answer"], *one.get("answer_aliases", ())]
        questions.append(Question(one["question"], share, lambda chunks, share=share: share(chunks) == 1, answers))
    with _indexed({name: f"# {title}\n\n{text}\n" for (title, text), name in file_of.items()}) as index:
        yield index, questions


@contextmanager
def medical(data: Path) -> Iterator[Collected]:
    """The first 200,000 characters of one long text, and questions whose answer some chunk of these bears.

    Source: GraphRAG-Bench (github.com/GraphRAG-Bench/GraphRAG-Benchmark), medical.
    """
    folder = data / "graphrag-bench"
    text = json.loads((folder / "medical.json").read_text(encoding="utf-8"))[0]["context"]
    asked = json.loads((folder / "medical_questions.json").read_text(encoding="utf-8"))
    with _indexed({"medical.txt": text[:_PART]}) as index:
        texts = dict(zip(index.lexicon.ids, index.lexicon.texts(), strict=True))

        def share(words: Sequence[str], chunks: Collection[str]) -> float:
            return word_share(words, " ".join(texts[chunk] for chunk in chunks))

        def bears(words: Sequence[str], chunks: Collection[str]) -> bool:
            return any(share(words, [chunk]) >= BEARING for chunk in chunks)

        found = [(one["question"], answer_words(one["question"], one["answer"])) for one in asked]
        questions = [
            Question(text, partial(share, words), partial(bears, words), words=words)
            for text, words in found
            if len(words) >= _LEAST_WORDS
        ]
        borne = [question for question in questions if question.complete(texts)]
        yield index, borne[:: -(-len(borne) // _MOST) or 1]


def contains(text: str, answers: Sequence[str]) -> bool:
    """Contain-Acc (A-RAG, 4.1): whether a text contains an answer, both without case, articles and punctuation."""

    def bare(text: str) -> str:
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text.lower().translate(_NO_PUNCTUATION)).split())

    return any(answer and answer in bare(text) for answer in map(bare, answers))


def word_share(words: Sequence[str], text: str) -> float:
    """The share of these words that a plain text contains."""
    return sum(word in text for word in words) / len(words)


def answer_words(question: str, answer: str) -> list[str]:
    """The content words of an answer that its question does not hold; each at most seven letters, as a stem."""
    asked = plain(question)
    return list(dict.fromkeys(word[:7] for word in content_words(answer) if word[:7] not in asked))


@contextmanager
def _indexed(files: Mapping[str, str]) -> Iterator[DocumentIndex]:
    with tempfile.TemporaryDirectory() as name:
        for file, text in files.items():
            Path(name, file).write_text(text, encoding="utf-8")
        index = DocumentIndex(name, embeddings=vectors_of_this_run(), index=":memory:")
        index.sync(exact=True)
        yield index


def names(text: str) -> list[str]:
    """Likely names in a text: quotations, runs of capitalized words, numbers; joined by "and", also one by one."""
    result: dict[str, None] = {}
    for whole in map(_trimmed, _NAME.findall(text)):
        parts = map(_trimmed, whole.split(" and ")) if " and " in whole else ()
        result |= dict.fromkeys(name for name in (whole, *parts) if _LEAST_NAME <= len(name) <= _LONGEST_NAME)
    return list(result)


def _trimmed(name: str) -> str:
    """A name without quotation marks and without stop words at its ends."""
    words = name.strip(_EDGE).split()
    if name[:1] in '"“':
        return " ".join(words)
    telling = [at for at, word in enumerate(words) if word.lower().strip(_EDGE) not in _STOP_WORDS]
    words = words[telling[0] : telling[-1] + 1] if telling else []
    return re.sub(r"['’]s$", "", " ".join(words).strip(_EDGE))


def _first_line(text: str) -> str:
    return plain(text.lstrip().split("\n", 1)[0].strip("#= \t"))


@lru_cache(maxsize=2)
def _titles_of(index: DocumentIndex) -> list[str]:
    """The titles of the chunks of ``index.lexicon.ids``, plain: the first sentence of each, or its heading."""
    return [_first_line(chunk.passage.sentences[0]) for chunk in index.chunks()]


@dataclass(frozen=True, slots=True)
class Rules:
    """How the rules weigh what speaks for a chunk, and when they stop. Scores are cosines or shares, 0 to 1."""

    tokens: int = 4_000  # retrieved, after which nothing more is read
    least: int = 2  # chunks that are read in any case, where there are as many
    most: int = 8  # chunks that are read
    mean: float = 1.5  # weight of the mean cosine of a chunk's sentences, beside 1 for its best one
    names: float = 0.4  # weight of the share of the question's names that a chunk holds
    words: float = 0.4  # the same for its other words
    missing: float = 0.6  # the same for those words that nothing that was read holds
    title: float = 0.4  # weight of a name of the question as the chunk's title, until such a chunk is read
    linked_title: float = 0.8  # weight of a name that was read as the chunk's title
    linked_mention: float = 0.1  # weight of such a name anywhere in the chunk
    rarity: float = 1.5  # power of a name's rarity
    fading: float = 0.8  # what is left of an older reading's names with each new one
    rest: float = 0.5  # what everything else counts for when names are followed
    enough: float = 0.4  # share of the first chunk's score below which nothing more is read


class Words:
    """Keywords in the chunks of ``index.lexicon.ids``.

    ``rarity`` is ``(keys,)``, 1 for a keyword in one chunk, near 0 for one in nearly all, 0 for one in none. Of shape
    ``(chunks, keys)``: ``held``, number of occurrences, up to 2, divided by 2, and ``title``, the share of the keyword
    in the chunk's title.
    """

    def __init__(self, index: DocumentIndex, keywords: Sequence[str]) -> None:
        self.keys = tuple(dict.fromkeys(filter(None, map(plain, keywords))))
        titles, occurrences = _titles_of(index), index.lexicon.occurrences(self.keys)
        self.held: Scores = np.zeros((len(titles), len(self.keys)), np.float32)
        self.title: Scores = np.zeros((len(titles), len(self.keys)), np.float32)
        for column, key in enumerate(self.keys):
            places = occurrences[key]
            self.held[places.rows, column] = np.minimum(places.counts, _COUNTED) / _COUNTED
            for row in places.rows:
                self.title[row, column] = len(key) / max(len(titles[row]), 1) if key in titles[row] else 0.0
        rarities = [rarity(len(occurrences[key].rows), len(titles)) for key in self.keys]
        self.rarity = np.array(rarities, np.float32)

    def coverage(self, keys: Collection[str]) -> Scores:
        """``(chunks,)``, a chunk's share of these keywords, each weighted by its rarity, 0 to 1."""
        weights = self._weights(keys)
        return np.asarray((self.held > 0) @ weights / max(float(weights.sum()), 1e-9), np.float32)

    def titled(self, keys: Collection[str]) -> Scores:
        """``(chunks,)``, the share of the rarest of these keywords in a title, 0 to 1."""
        return (self.title * self._weights(keys)).max(axis=1, initial=0)

    def linked(self, rules: Rules) -> Scores:
        """``(chunks,)``, how far a chunk concerns the rarest of the keywords, by its title and its text."""
        about = rules.linked_title * self.title + rules.linked_mention * self.held
        return (about * self.rarity**rules.rarity).max(axis=1, initial=0)

    def _weights(self, keys: Collection[str]) -> Scores:
        return np.where([key in keys for key in self.keys], self.rarity, 0.0)


@dataclass
class Reader:
    """What one method did for one question: its calls, the chunks whose whole text it got, and retrieved tokens."""

    index: DocumentIndex
    calls: list[str] = field(default_factory=list)
    read: dict[str, str] = field(default_factory=dict)  # the context tracker, id -> digest
    tokens: int = 0

    def search(self, search: Callable[..., Hits], query: Any) -> None:
        """Calls one of the searches, for one sentence; the rules do without the heading above it."""
        self.calls.append(search.__name__)
        hits = search(self.index, query, top_k=1, snippets=0).hits
        self.tokens += sum(estimated_tokens(snippet) for hit in hits for snippet in hit.snippets)

    def fetch(self, chunks: Sequence[str]) -> list[str]:
        """Reads chunks; the texts of those that were not read before."""
        reading = chunk_read(self.index, chunks, read=self.read) if chunks else Reading(())
        self.calls.append("chunk_read")
        self.tokens, self.read = self.tokens + reading.tokens, {**self.read, **reading.read}
        return [part.text for part in reading.parts]


def by_rules(index: DocumentIndex, question: str, rules: Rules, interfaces: Collection[str] = ALL) -> Reader:
    """Reads for one question.

    The rules see the scores of all chunks of a search, and of texts those that were read.

    Source: A-RAG (arXiv 2602.03442), Algorithm 1, with rules in the place of the language model.
    """
    reader, ids, asked = Reader(index), index.lexicon.ids, _asked_for(question)
    own_names, words = list(map(plain, names(question))), content_words(question)
    base: Scores = np.zeros(len(ids), np.float32)
    links: Scores = np.zeros(len(ids), np.float32)
    found, following, first, texts = None, False, 0.0, list[str]()
    if "keyword_search" in interfaces and asked:
        reader.search(keyword_search, asked)
        found = Words(index, asked)
        base += rules.names * found.coverage(own_names) + rules.words * found.coverage(words)
    if "semantic_search" in interfaces:
        reader.search(semantic_search, question)
        similar = index.similar(question)
        mean = np.add.reduceat(similar.sentences, similar.starts[:-1]) / np.diff(similar.starts)
        base += similar.scores + rules.mean * mean
    while True:
        scores = base if found is None else base + _open(found, own_names, words, texts, rules)
        scores = links + rules.rest * scores if following and links.any() else scores.copy()
        scores[[row for row, chunk in enumerate(ids) if chunk in reader.read]] = 0
        top = float(scores.max(initial=0))
        first = first if reader.read else top
        if top <= (rules.enough * first if len(reader.read) >= rules.least else 0):
            return reader
        texts += reader.fetch([ids[int(scores.argmax())]])
        if len(reader.read) >= rules.most or (len(reader.read) >= rules.least and reader.tokens >= rules.tokens):
            return reader
        news = [name for name in names(texts[-1]) if len(name) >= _LEAST_FOLLOWED and plain(name) not in own_names]
        if news and "keyword_search" in interfaces:
            reader.search(keyword_search, news)
            links = np.maximum(links * rules.fading, Words(index, news).linked(rules))
        following = not following and "keyword_search" in interfaces


def content_words(text: str) -> list[str]:
    """Returns the words of an English text that the rules take as keywords, plain, each once."""
    words = _WORD.findall(plain(text))
    return list(dict.fromkeys(word for word in words if len(word) >= _LEAST_KEYWORD and word not in _STOP_WORDS))


def _asked_for(question: str) -> list[str]:
    return list(dict.fromkeys([*names(question), *content_words(question)]))


def _open(found: Words, own_names: Sequence[str], words: Sequence[str], read: Sequence[str], rules: Rules) -> Scores:
    """What still asks to be read about: names that are no title of what was read, words that are not in it."""
    texts, titles = list(map(plain, read)), list(map(_first_line, read))
    untitled = [name for name in own_names if not any(name in title for title in titles)]
    missing = [word for word in words if not any(word in text for text in texts)] if read else []
    return rules.title * found.titled(untitled) + rules.missing * found.coverage(missing)


TOP_K = 5
COLUMNS = (
    "", "recall", "complete", "Contain-Acc", "recall, tuning half", "recall, other half", "retrieved tokens",
    "chunks read", "calls"
)  # fmt: skip
FULL = "A-RAG, all interfaces"
_POOLED = (
    "paragraphs pooled. Recall: the share of a question's supporting paragraphs that were read whole; complete: all. "
    "Contain-Acc: the share of questions with a short answer that has it in what was read. The rules stop at 600 tokens"
)
_OTHER = "and are those of HotpotQA, so the halves are two samples. No language model"
SETS: Mapping[str, tuple[Callable[[Path], AbstractContextManager[Collected]], int, str]] = {
    "hotpotqa": (hotpotqa, 600, f"HotpotQA, distractor setting: 100 questions, their 1,000 {_POOLED}; their weights "
        "were chosen on the even questions (tuning half). No language model"),
    "musique": (musique, 600, f"MuSiQue: 100 training questions of two to four hops, their 1,890 {_POOLED} {_OTHER}"),
    "graphrag-bench": (medical, 4_000, "GraphRAG-Bench, medical: 200,000 characters, and at most 100 questions of "
        f"which a chunk bears the answer, holds {BEARING:.0%} of its words. Recall: the share of these words in what "
        f"was read; complete: such a chunk was read. The rules stop at 4,000 tokens {_OTHER}"),
}  # fmt: skip
"""What is measured, by its folder."""


def measure(data: Path, name: str) -> Mapping[str, object]:
    """The body of the results file for one of ``SETS``."""
    collected, most, about = SETS[name]
    with collected(data) as (index, questions):
        how = methods(index, Rules(tokens=most))
        played = {method: [play(question.text) for question in questions] for method, play in how.items()}
        texts = {chunk.id: chunk.text for chunk in index.chunks()}
    bootstrap, rows = Bootstrap([str(place) for place in range(len(questions))]), []
    for method, runs in played.items():
        both = list(zip(questions, runs, strict=True))
        recalls = [question.recall(one.read) for question, one in both]
        complete = bootstrap.mean([question.complete(one.read) for question, one in both])
        answered = [contains(" ".join(map(texts.__getitem__, one.read)), q.answers) for q, one in both if q.answers]
        halves = (short(float(np.mean(recalls[start::2]))) for start in (0, 1))
        tokens, read, calls = np.mean([(one.tokens, len(one.read), len(one.calls)) for one in runs], axis=0)
        means = (f"{tokens:,.0f}", f"{read:.1f}", f"{calls:.1f}")
        contained = short(float(np.mean(answered))) if answered else ""
        rows.append([method, cell(bootstrap.mean(recalls)), cell(complete), contained, *halves, *means])
    return {"about": about, "columns": list(COLUMNS), "rows": rows}


def methods(index: DocumentIndex, rules: Rules) -> Mapping[str, Callable[[str], Reader]]:
    """Every method by name: the baselines, the loop by rules, and the loop without each interface."""
    chunks, vectors = list(index.chunks()), vectors_of_this_run()
    matrix = vectors.encode([chunk.text for chunk in chunks])

    def naive(question: str) -> Reader:
        """One vector a chunk, the nearest five in one go."""
        best = np.argsort(-(matrix @ vectors.encode([question])[0]), kind="stable")[:TOP_K]
        tokens = sum(estimated_tokens(chunks[i].text) for i in best)
        return Reader(index, ["chunk_read"], {chunks[i].id: "" for i in best}, tokens)

    def read_at_once(question: str) -> Reader:
        """A-RAG (Naive), section 4.1: one tool, which searches by meaning and returns whole chunks."""
        reader = Reader(index)
        reader.fetch([hit.chunk for hit in semantic_search(index, question, top_k=TOP_K).hits])
        return reader

    return {
        f"naive RAG, top {TOP_K} chunks": naive,
        f"A-RAG (Naive), top {TOP_K} by best sentence": read_at_once,
        FULL: lambda question: by_rules(index, question, rules),
        "without keyword search": lambda question: by_rules(index, question, rules, ("semantic_search", "chunk_read")),
        "without semantic search": lambda question: by_rules(index, question, rules, ("keyword_search", "chunk_read")),
        "without chunk read": lambda question: _without_reading(index, question, rules),
    }


def _without_reading(index: DocumentIndex, question: str, rules: Rules) -> Reader:
    """The searches give whole chunks: in turn by words, by meaning, and by the names in what came."""
    reader, keywords = Reader(index), _asked_for(question)
    for top_k in range(1, TOP_K + 1):
        for found in (keyword_search(index, keywords, top_k=top_k), semantic_search(index, question, top_k=top_k)):
            texts = reader.fetch([hit.chunk for hit in found.hits])
            if reader.tokens >= rules.tokens and len(reader.read) >= rules.least:
                return reader
            keywords = [name for text in texts for name in names(text)] or keywords
    return reader
