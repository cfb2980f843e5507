"""The words of a text, as search and accounting compare them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import Stemmer

from callsheet.graphs.text.sanitizing import normalized

_WORD = re.compile(r"[^\W_]+")
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
    """The text in lower case without accents, width variants or ligatures; Korean and Japanese are unchanged."""
    if text.isascii():
        return text.lower()
    decomposed = normalized("NFKD", text.casefold())
    return normalized("NFC", "".join(c for c in decomposed if c in _KANA_MARKS or not unicodedata.combining(c)))


def tokens(text: str) -> list[str]:
    """The words of a text: folded, stemmed, without stop words; Chinese, Japanese and Korean in pairs of characters."""
    words: list[str] = []
    for word in _WORD.findall(fold(text)):
        for part in (word,) if word.isascii() else _CJK.split(word):
            if _CJK.fullmatch(part):
                words.extend(part[i : i + 2] for i in range(max(1, len(part) - 1)))
            elif part and part not in STOP_WORDS:
                words.append(_stem(part))
    return words


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    stem: str = Stemmer.Stemmer("english").stemWord(word)
    return stem
