"""Tells the language of a text, and the encoding of a file that does not say it, or that neither is certain.

It is also used by the process that reads documents, so it imports nothing of ours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

HAS_LANGUAGES = find_spec("py3langid") is not None
"""Whether the extra ``documents`` can tell languages."""
_SAMPLE, _LONGEST = 20_000, 2_000
_FEWEST_LETTERS = 10
_LEAST, _SHARE = 0.7, 0.85
_MESS, _COHERENCE, _COHERENT = 0.1, 0.1, 0.3
_BEFORE_UTF_8 = {
    "cp1250": "bs cs hr hu pl ro sk sl sq",
    "cp1251": "be bg kk ky mk mn ru sr tg tt uk",
    "cp1252": "af br ca cy da de en es eu fi fo fr ga gl id is it lb ms nl nn no oc pt sv sw wa",
    "cp1253": "el",
    "cp1254": "az tr",
    "cp1255": "he",
    "cp1256": "ar fa ps ug ur",
    "cp1257": "et lt lv",
    "cp1258": "vi",
    "cp874": "th",
    "gb18030": "zh",
    "cp932": "ja",
    "cp949": "ko",
}
"""Languages by the encoding of Windows for them (WHATWG, HTML, 13.2.3.2, suggested defaults by locale)."""
_OTHERS = {
    "cp1250": ("iso8859_2",),
    "cp1251": ("koi8_r", "iso8859_5"),
    "cp1253": ("iso8859_7",),
    "gb18030": ("big5",),
    "cp932": ("euc_jp",),
}
"""Other encodings that are in use for the same languages."""
_FAMILY = {language: encoding for encoding, languages in _BEFORE_UTF_8.items() for language in languages.split()}
_IDEOGRAPHIC = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "HALFWIDTH", "FULLWIDTH", "IDEOGRAPHIC")


class _Reading(NamedTuple):
    """A text as an encoding reads it, and the probability that its language is one of that encoding."""

    probability: float
    encoding: str
    text: str


def languages_of(text: str) -> dict[str, float]:
    """The languages (ISO 639-1) that a text may be in, and their probabilities, the likeliest first.

    It is empty if the extra is not installed.
    """
    if not HAS_LANGUAGES:
        return {}
    return {str(language): float(probability) for language, probability in _identifier().rank(text[:_LONGEST])}


def encoding_of(content: bytes) -> str | None:
    """The encoding of a text that is not UTF-8; None if it is not certain.

    An encoding is certain if the text that it gives has words, and is in a language for which this encoding is used,
    and if no other encoding gives another text of which that can be said.
    """
    from charset_normalizer.cd import coherence_ratio
    from charset_normalizer.md import mess_ratio

    sample = content if len(content) <= _SAMPLE else content[:_SAMPLE].rpartition(b"\n")[0] or content[:_SAMPLE]
    readings = list(_readings(sample))
    if not readings:
        return None
    mess = {one: mess_ratio(one.text, 1.0) for one in readings}
    readings = [one for one in readings if mess[one] <= min(mess.values()) + _MESS]
    coherence = {one: max((share for _, share in coherence_ratio(one.text)), default=0.0) for one in readings}
    if (best := max(coherence.values())) >= _COHERENT:
        readings = [one for one in readings if coherence[one] > best - _COHERENCE]
    first = max(readings)
    is_certain = first.probability >= _LEAST and first.probability >= _SHARE * sum(one.probability for one in readings)
    return first.encoding if is_certain and _letters(first.text) >= _FEWEST_LETTERS else None


def _readings(content: bytes) -> Iterator[_Reading]:
    """The plausible texts, each by the encoding that fits its language best."""
    found: dict[str, _Reading] = {}
    for family in _BEFORE_UTF_8:
        for encoding in (family, *_OTHERS.get(family, ())):
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                continue
            if not _is_plausible(text):
                continue
            probability = _families(text).get(family, 0.0)
            if text not in found or probability > found[text].probability:
                found[text] = _Reading(probability, encoding, text)
    yield from (reading for reading in found.values() if reading.probability > 0.05)


def _families(text: str) -> Mapping[str, float]:
    """Encoding of Windows -> the probability that a text is in one of its languages."""
    found: dict[str, float] = {}
    for language, probability in languages_of(text).items():
        found[_FAMILY[language]] = found.get(_FAMILY[language], 0.0) + probability
    return found


def _is_plausible(text: str) -> bool:
    """Whether no word has letters of several scripts, a sign among its letters, or a capital after a small letter."""
    if any(letter > "\x7f" and unicodedata.category(letter) in ("Cc", "Cn", "Co") for letter in text):
        return False
    for word in text.split():
        if word.isascii():
            continue
        for one, two in pairwise(word):
            if max(one, two) > "\x7f" and one.islower() and two.isupper():
                return False
            if _is_letter(one) and _is_letter(two) and _script(one) != _script(two):
                return False
        for one, sign, two in zip(word, word[1:], word[2:], strict=False):
            is_odd = sign > "\x7f" and unicodedata.category(sign)[0] in "SN"
            if is_odd and one.isalpha() and two.isalpha():
                return False
    return True


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


@cache
def _script(letter: str) -> str:
    """The script of a letter, as its name begins; those of East Asia, which are mixed, are one."""
    script = unicodedata.name(letter, "?").partition(" ")[0]
    return "CJK" if script in _IDEOGRAPHIC else script


def _letters(text: str) -> int:
    """The letters of a text; a character of East Asia is as much as three."""
    return sum(3 if _script(letter) == "CJK" else 1 for letter in text if letter.isalpha())


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(_FAMILY))
    return identifier
