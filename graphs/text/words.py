"""Splits texts into words for search and accounting, and queries into clauses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

import Stemmer

from callsheet.graphs.text.unicode import normalized

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CJK = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+)")
STOP_WORDS = frozenset(
    """
    a an and any are as at be by can do for from get give has have how i if in into is it its me my of on or
    our please show so that the their them then there these this to tool use used using want was we what when
    where which who will with would you your
    """.split()
)
_KANA_MARKS = "\u3099\u309a"  # they distinguish Japanese letters; accents of other scripts do not


def fold(text: str) -> str:
    """Returns the text in lower case without accents, width variants or ligatures.

    Korean and Japanese are unchanged.
    """
    if text.isascii():
        return text.lower()
    decomposed = normalized("NFKD", text.casefold())
    return normalized("NFC", "".join(c for c in decomposed if c in _KANA_MARKS or not unicodedata.combining(c)))


def split_name(name: str) -> str:
    """Splits a name into words: ``convertLength_to`` becomes ``convert length to``."""
    return " ".join(re.split(r"[\W_]+", _CAMEL.sub(" ", name))).strip().lower()


def tokens(text: str) -> list[str]:
    """Returns the words of a text as ``words_of`` does, but folded and stemmed."""
    return [_stem(word) for word in words_of(fold(text))]


def words_of(text: str) -> Iterator[str]:
    """Iterates over the words of a text that is in lower case already; leaves out stop words.

    Chinese, Japanese and Korean do not separate words, so each pair of characters counts as one.
    """
    for word in _WORD.findall(text):
        for part in (word,) if word.isascii() else _CJK.split(word):
            if is_east_asian(part):
                yield from (part[i : i + 2] for i in range(max(1, len(part) - 1)))
            elif part and part not in STOP_WORDS:
                yield part


def is_east_asian(word: str) -> bool:
    """Returns whether a word of ``words_of`` is Chinese, Japanese or Korean."""
    return _CJK.fullmatch(word) is not None


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    stem: str = Stemmer.Stemmer("english").stemWord(word)
    return stem


Span = tuple[int, int]
MOST_CLAUSES = 8
_LEAST_WORDS = 2
_PREFIX = 4000  # characters that are cut into clauses: more than embedders of queries read

_CONNECTIVE = (
    r"and then|then|after that|afterwards?|finally|lastly|as well as|next|in addition|additionally|also|furthermore"
    r"|moreover|meanwhile|besides|followed by|along with|plus"
)
_CUT = re.compile(
    r"[.!?;]\s+|[。！？；]|\n\s*(?:(?:\d+[.)]|[-*•])\s+)?|(?:^|\s)(?:\d+[.)]|[-*•])\s+"
    rf"|(?:,|(?<![\s,]))\s+(?:and\s+)?\b(?:{_CONNECTIVE})\b[,:]?\s+",
    re.IGNORECASE,
)
_PART = re.compile(r",\s+(?:and\s+)?|(?<=\s)and\s+", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]{1,200}\"|“[^”]{1,200}”|(?<=\s)'[^']{1,200}'(?=\W|$)|`[^`]{1,200}`")


def clause_spans(query: str) -> list[Span]:
    """Returns the spans of the clauses of a query; empty if there is only one.

    The query is split at ends of sentences, semicolons, line ends, list numbers and connectives, but not inside
    quotation marks. A piece with fewer than two content words is joined to the one before; if there are too many
    pieces, the shortest are joined.
    """
    pieces = _joined(query, _cut(query))
    while len(pieces) > MOST_CLAUSES:
        shortest = min(range(len(pieces) - 1), key=lambda i: pieces[i + 1][1] - pieces[i][0])
        pieces[shortest : shortest + 2] = [(pieces[shortest][0], pieces[shortest + 1][1])]
    return pieces if len(pieces) > 1 else []


def parts_of(clause: str) -> list[str]:
    """Splits a clause at commas and *and*, but not inside quotation marks.

    Short parts are joined.
    """
    return [clause[start:end].strip() for start, end in _joined(clause, _cut(clause, _PART))]


def _joined(query: str, cut: Iterable[Span]) -> list[Span]:
    """Returns the pieces, those with too few content words joined to the one before, or after the first."""
    pieces: list[Span] = []
    for start, end in cut:
        if pieces and _words(query, start, end) < _LEAST_WORDS:
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    if len(pieces) > 1 and _words(query, *pieces[0]) < _LEAST_WORDS:
        pieces[:2] = [(pieces[0][0], pieces[1][1])]
    return pieces


def _cut(query: str, pattern: re.Pattern[str] = _CUT) -> Iterator[Span]:
    quoted = [match.span() for match in _QUOTED.finditer(query)]
    start = 0
    for match in pattern.finditer(query, 0, _PREFIX):
        if any(left < match.start() < right for left, right in quoted):
            continue
        if query[start : match.start()].strip():
            yield start, match.start()
        start = match.end()
    if query[start:].strip():
        yield start, len(query)


def _words(query: str, start: int, end: int) -> int:
    return len(set(tokens(query[start:end])))
