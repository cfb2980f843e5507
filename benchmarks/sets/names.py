"""The names in a text, by which the rules of ``benchmarks.measurements.arag`` go from one chunk to the next."""

from __future__ import annotations

import re
from functools import lru_cache

from callsheet.retrievers.documents import DocumentIndex
from callsheet.retrievers.documents.document_text import STOP_WORDS, plain

_LEAST_NAME, _LONGEST_NAME = 2, 60
_JOINING = r"(?:of|the|and|de|la|von|van|der|du|&)"
_CAPITAL = r"(?:(?:[A-Z]\.)+|[^\W\d_a-zß-ÿа-я][\w'’&-]*(?:\.\w+)*|\d[\w.,'’-]*\w|\d)"
_NAME = re.compile(rf"\"[^\"\n]{{2,60}}\"|“[^”\n]{{2,60}}”|{_CAPITAL}(?:[ \t]+(?:{_JOINING}[ \t]+){{0,2}}{_CAPITAL})*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_QUOTES = '"“'
_EDGE = " .,?!;:'\"“”‘’"


def names(text: str) -> list[str]:
    """Likely names in a text: quotations, runs of capitalized words, numbers; without repetitions, in order.

    Names joined by "and" also count one by one. Chinese, Japanese and Korean have no capitals and so no names.
    """
    result: dict[str, None] = {}
    for match in _NAME.finditer(text):
        if _CJK.match(match.group()):
            continue
        whole = _trimmed(match.group())
        parts = map(_trimmed, whole.split(" and ")) if " and " in whole else ()
        result |= dict.fromkeys(name for name in (whole, *parts) if _LEAST_NAME <= len(name) <= _LONGEST_NAME)
    return list(result)


def first_line(text: str) -> str:
    """The first line of a text without the marks of a heading."""
    return text.lstrip().split("\n", 1)[0].strip("#= \t")


def _trimmed(name: str) -> str:
    """A name without quotation marks and without stop words at its ends."""
    words = name.strip(_EDGE).split()
    if name[:1] in _QUOTES:
        return " ".join(words)
    telling = [at for at, word in enumerate(words) if word.lower().strip(_EDGE) not in STOP_WORDS]
    words = words[telling[0] : telling[-1] + 1] if telling else []
    return re.sub(r"['’]s$", "", " ".join(words).strip(_EDGE))


@lru_cache(maxsize=2)
def titles_of(index: DocumentIndex) -> list[str]:
    """The titles of the chunks of ``index.lexicon.ids``, plain: the first sentence of each, or its heading."""
    return [plain(first_line(chunk.passage.sentences[0])) for chunk in index.chunks()]
