"""Names and content words of a text, recognized by their form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callsheet.graphs.text.sanitizing import normalized

_LEAST_WORD, _LEAST_NAME, _LONGEST_NAME = 4, 2, 60
_JOINING = r"(?:of|the|and|de|la|von|van|der|du|&)"
_CAPITAL = r"(?:(?:[A-Z]\.)+|[^\W\d_a-zß-ÿа-я][\w'’&-]*(?:\.\w+)*|\d[\w.,'’-]*\w|\d)"
_NAME = re.compile(rf"\"[^\"\n]{{2,60}}\"|“[^”\n]{{2,60}}”|{_CAPITAL}(?:[ \t]+(?:{_JOINING}[ \t]+){{0,2}}{_CAPITAL})*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_WORD = re.compile(r"[^\W_]+")
_QUOTES = '"“'
_EDGE = " .,?!;:'\"“”‘’"
STOP_WORDS = frozenset(
    """
    a about after all also although an and another any are as at be because been before being between both but by
    can could did do does during each every for from had has have he her hers him his how however i if in into is it
    its itself just many me more most much my no nor not of off on once only or other our out over own same several
    she should since so some such than that the their them then there these they this those through to too under
    until up very was we were what when where which while who whom whose why will with would you your
    """.split()
)


def plain(text: str) -> str:
    """A text in the form for comparing words: lower case, canonical characters, single spaces."""
    folded = text.lower() if text.isascii() else normalized("NFD", text).casefold()
    return " ".join(normalized("NFC", folded).split())


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


def content_words(text: str) -> list[str]:
    """The content words of a text, plain, without repetitions; Chinese, Japanese and Korean in pairs of characters."""
    return list(dict.fromkeys(_content_words(plain(text))))


def _content_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        if (run := _CJK.search(word)) is not None:
            yield from (run.group()[i : i + 2] for i in range(max(1, len(run.group()) - 1)))
        elif len(word) >= _LEAST_WORD and word not in STOP_WORDS:
            yield word


def _trimmed(name: str) -> str:
    """A name without quotation marks and without stop words at its ends."""
    words = name.strip(_EDGE).split()
    if name[:1] in _QUOTES:
        return " ".join(words)
    while words and words[0].lower().strip(_EDGE) in STOP_WORDS:
        words = words[1:]
    while words and words[-1].lower().strip(_EDGE) in STOP_WORDS:
        words = words[:-1]
    return re.sub(r"['’]s$", "", " ".join(words).strip(_EDGE))
