"""Detects the language of a text, and the encoding of a file that does not declare it.

The process that reads documents loads this module too, so it imports no other module of ours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

HAS_LANGUAGES = find_spec("py3langid") is not None
"""Whether the package that detects languages is installed."""
_SAMPLE = 20_000
"""Number of bytes of a file of which its encoding is told."""
_LONGEST = 2_000
"""Number of characters of a text of which its language is told."""
_FEWEST_LETTERS = 10
"""Minimum number of letters of a text whose encoding can be certain."""
_LEAST = 0.7
"""Minimum probability that the language of a certain text is one of its encoding."""
_SHARE = 0.85
"""The same, among all readings."""
_NEGLIGIBLE = 0.05
_MESS = 0.1
"""How much more mess than in the cleanest reading is accepted, as charset-normalizer measures it."""
_COHERENCE = 0.1
"""How much less coherence than in the most coherent reading is accepted, as charset-normalizer measures it."""
_COHERENT = 0.3
"""If no reading is that coherent, coherence says nothing."""
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
    """Returns the languages (ISO 639-1) that a text may be in, with their probabilities, the likeliest first.

    The result is empty if the extra ``documents`` is not installed.
    """
    if not HAS_LANGUAGES:
        return {}
    return {str(language): float(probability) for language, probability in _identifier().rank(text[:_LONGEST])}


def encoding_of(content: bytes) -> str | None:
    """Returns the encoding of a text that is not UTF-8; None if it is not certain.

    An encoding is certain if the decoded text has words in a language that uses this encoding, and if no other encoding
    gives another such text.
    """
    sample = content
    if len(content) > _SAMPLE:
        # A whole line ends with a whole character.
        sample = content[:_SAMPLE].rpartition(b"\n")[0] or content[:_SAMPLE]
    readings = _cleanest(_readings(sample))
    if not readings:
        return None
    best = max(readings)
    total = sum(reading.probability for reading in readings)
    if best.probability < max(_LEAST, _SHARE * total) or _letters(best.text) < _FEWEST_LETTERS:
        return None
    return best.encoding


def _readings(content: bytes) -> list[_Reading]:
    """Returns the plausible texts, each by the encoding that fits its language best."""
    best: dict[str, _Reading] = {}
    for family in _BEFORE_UTF_8:
        for encoding in (family, *_OTHERS.get(family, ())):
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                continue
            if not _is_plausible(text):
                continue
            probability = _families(text).get(family, 0.0)
            if text not in best or probability > best[text].probability:
                best[text] = _Reading(probability, encoding, text)
    return [reading for reading in best.values() if reading.probability > _NEGLIGIBLE]


def _cleanest(readings: list[_Reading]) -> list[_Reading]:
    """Removes readings that are less clean or less coherent than others, as charset-normalizer measures it."""
    from charset_normalizer.cd import coherence_ratio
    from charset_normalizer.md import mess_ratio

    mess = {reading: mess_ratio(reading.text, 1.0) for reading in readings}
    least_mess = min(mess.values(), default=0.0)
    clean = [reading for reading in readings if mess[reading] <= least_mess + _MESS]
    coherence: dict[_Reading, float] = {}
    for reading in clean:
        coherence[reading] = max((share for _, share in coherence_ratio(reading.text)), default=0.0)
    most_coherence = max(coherence.values(), default=0.0)
    if most_coherence < _COHERENT:
        return clean
    return [reading for reading in clean if coherence[reading] > most_coherence - _COHERENCE]


def _families(text: str) -> Mapping[str, float]:
    """Returns encoding of Windows -> the probability that a text is in one of its languages."""
    families: dict[str, float] = {}
    for language, probability in languages_of(text).items():
        family = _FAMILY[language]
        families[family] = families.get(family, 0.0) + probability
    return families


def _is_plausible(text: str) -> bool:
    """Returns whether a text has no character that texts do not have, and only plausible words."""
    for character in text:
        if character > "\x7f" and unicodedata.category(character) in ("Cc", "Cn", "Co"):
            return False
    return all(word.isascii() or _is_plausible_word(word) for word in text.split())


def _is_plausible_word(word: str) -> bool:
    """Returns whether a word has letters of one script, no sign among its letters, no capital after a small letter.

    Only what is not ASCII counts, because that is what a wrong encoding changes.
    """
    for one, two in pairwise(word):
        if one.islower() and two.isupper() and not (one.isascii() and two.isascii()):
            return False
        if _is_letter(one) and _is_letter(two) and _script(one) != _script(two):
            return False
    for before, sign, after in zip(word, word[1:], word[2:], strict=False):
        is_sign = sign > "\x7f" and unicodedata.category(sign)[0] in "SN"
        if is_sign and before.isalpha() and after.isalpha():
            return False
    return True


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


@cache
def _script(letter: str) -> str:
    """Returns the script of a letter, the beginning of its name; those of East Asia, which are mixed, are one."""
    script = unicodedata.name(letter, "?").partition(" ")[0]
    return "CJK" if script in _IDEOGRAPHIC else script


def _letters(text: str) -> int:
    """Returns the number of letters of a text; a character of East Asia counts as three."""
    return sum(3 if _script(letter) == "CJK" else 1 for letter in text if letter.isalpha())


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(_FAMILY))
    return identifier
