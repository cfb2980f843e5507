"""Removes or escapes hidden characters of texts from outside before people or models see them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from callsheet.graphs.text.unicode import encodable

LONGEST_TEXT = 4_096
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_BREAKS = re.compile(r"[\n\t\u2028\u2029]")


class Hidden(StrEnum):
    """The kinds of characters that people do not see, but that a model, an embedder or a terminal processes."""

    TAG = "tag"
    """Unicode tags (U+E0000 to U+E007F): an invisible alphabet."""
    BIDI = "bidirectional"
    """Overrides, embeddings and isolates, which change the display order of text."""
    CONTROL = "control"
    """Control characters and terminal escape sequences (ANSI)."""
    INVISIBLE = "invisible"
    """Other invisible characters: zero-width spaces, fillers, direction marks, variation selectors."""


# Unicode's DerivedCoreProperties, Default_Ignorable_Code_Point (with direction marks), without tags and variation
# selectors, with the interlinear annotation.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_SELECTOR = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_EMOJI = "\u00a9\u00ae\u2049\u203c\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_SELECTED = f"#*0-9{_EMOJI}\u1000-\u109f\u2200-\u22ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_JOINING = (
    "\u0600-\u061b\u061d-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af\u1a20-\u1cff"
    "\ufb50-\ufdff\ufe70-\ufefc"
)
_FLAGS = "|".join("".join(chr(0xE0000 + ord(c)) for c in f"{name}\x7f") for name in ("gbeng", "gbsct", "gbwls"))
# Legitimate uses: flags of England, Scotland and Wales; joiners after a letter of an Arabic or Indic script or in an
# emoji; one selector after a character that has variants; the selectors of Mongolian.
_LEGITIMATE = (
    f"(?<=\U0001f3f4)(?:{_FLAGS})|(?<=[{_JOINING}])[\u200c\u200d](?![{_IGNORABLE}])"
    f"|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])|(?<=[{_SELECTED}])[{_SELECTOR}]|(?<=[\u1820-\u18af])[\u180b-\u180f]"
)
_BLANK = "\u2800\U0001d159"
"""Symbols without ink, of which Unicode has no property."""
_ESCAPE = r"\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"
_SUSPECT = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_IGNORABLE}{_SELECTOR}\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
_HIDDEN = re.compile(
    f"(?P<legitimate>{_LEGITIMATE})|(?P<newline>\r\n?)|(?P<{Hidden.TAG}>[\U000e0000-\U000e007f]+)"
    f"|(?P<{Hidden.BIDI}>[\u202a-\u202e\u2066-\u2069])"
    f"|(?P<{Hidden.CONTROL}>{_ESCAPE}|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f])"
    f"|(?P<{Hidden.INVISIBLE}>[{_IGNORABLE}{_SELECTOR}])"
)


def shown(text: str, *, most: int | None = LONGEST_TEXT) -> str:
    """Returns the text without hidden characters, cut to ``most`` characters.

    Legitimate joiners and selectors (Persian, Indic scripts, emoji) stay. The text is not normalized: a clean text of
    this length is returned unchanged. With ``most=None``, nothing is cut.

    Examples:
        >>> shown("Adds\\u200b two\\x1b[8m numbers")
        'Adds two numbers'
    """
    if _SUSPECT.search(text):
        text = _HIDDEN.sub(_visible, text)
    if most is not None and len(text) > most:
        text = f"{text[: most - 1]}…"
    return text


def hidden_in(text: str) -> dict[Hidden, int]:
    """Counts the characters that ``shown`` would remove from a text, by their kind."""
    if not _SUSPECT.search(text):
        return {}
    counts: Counter[Hidden] = Counter()
    for match in _HIDDEN.finditer(text):
        if match.lastgroup in set(Hidden):
            counts[Hidden(match.lastgroup)] += len(match.group())
    return dict(counts)


def escaped(text: str) -> str:
    r"""Returns the text with hidden characters written as ``\x1b`` or ``\u202e``, for people."""
    return _HIDDEN.sub(lambda match: _visible(match) or match.group().encode("unicode_escape").decode(), text)


def escaped_line(text: str) -> str:
    """Returns ``escaped`` with line breaks escaped too, so that the text cannot imitate a line of our output."""
    return _BREAKS.sub(lambda match: match.group().encode("unicode_escape").decode(), escaped(text))


def written_out(document: str, *, longest: int = 4) -> str:
    """Returns a document with its hidden characters as escapes (``\u202e``), as JSON, Cypher and Turtle allow.

    All hidden characters must be inside quotation marks. ``longest`` is the number of hexadecimal digits of an escape
    above U+FFFF: 8 for ``\U0001f600``, 4 for two surrogates.
    """
    return _HIDDEN.sub(lambda match: "".join(_codes(match, longest)), document)


def spelled_out(document: str) -> str:
    """Returns a JSON document with escapes (``\u202e``) for all characters that are invisible or look like a blank.

    Unlike in ``written_out``, joiners and selectors are escaped too, so two documents that look the same are the same.
    The result is JSON with the same value.
    """
    if document.isascii() and document.isprintable():
        return document
    return document.translate({ord(one): _code_units(one) for one in set(document) if _is_unseen(one)})


def _is_unseen(character: str) -> bool:
    """Returns whether nothing is drawn for a character, or only a blank.

    The blank and the line break of JSON excepted.
    """
    if character in " \n":
        return False
    # Controls, formats, surrogates, private and unassigned characters, and all separators.
    return unicodedata.category(character)[0] in "CZ" or bool(_SUSPECT.match(character)) or character in _BLANK


def _code_units(text: str) -> str:
    """Returns the text as escapes of JSON."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _codes(match: re.Match[str], longest: int) -> Iterator[str]:
    for character in match.group():
        # A terminal sequence may extend beyond the quotation mark.
        if match.lastgroup == "legitimate" or not _SUSPECT.match(character):
            yield character
        elif ord(character) > 0xFFFF and longest == 8:
            yield f"\\U{ord(character):08x}"
        else:
            yield _code_units(character)


def visible(text: str) -> str:
    """Returns the text without hidden characters and lone surrogates, at any length."""
    return shown(encodable(text), most=None)


def without_hidden(text: str) -> str:
    r"""Returns the text without any invisible character, to search it, and not to show it.

    Legitimate joiners and selectors are removed too, and so is what is written as an escape (``\u200b``).
    """
    if "\\u" in text:
        text = _ESCAPES.sub(_unescaped, text)
    return _SUSPECT.sub("", visible(text))


def _unescaped(match: re.Match[str]) -> str:
    """Returns escaped characters with the hidden ones unescaped; other escapes stay."""
    characters: str = json.loads(f'"{match.group()}"')
    return "".join(one if _SUSPECT.match(one) else json.dumps(one)[1:-1] for one in characters)


def _visible(match: re.Match[str]) -> str:
    """Returns what is shown in place of a match of ``_HIDDEN``."""
    match match.lastgroup:
        case "legitimate":
            return match.group()
        case "newline":
            return "\n"
        case _:
            return ""
