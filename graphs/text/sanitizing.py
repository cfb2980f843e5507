"""Text from outside, made fit to be shown to a model, an embedder or a person; the original stays as it is."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Literal

from callsheet.graphs.text.regex import linear

LONGEST_TEXT, LARGEST_SCHEMA = 4_096, 65_536
_PILED = linear(r"(\pM{30})\pM+")
_BREAKS = re.compile(r"[\n\t\u2028\u2029]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TEXTS = frozenset({"title", "description", "$comment"})
_LISTS, _VALUES = frozenset({"enum", "examples"}), frozenset({"default", "const", "example"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def counted(number: int, word: str, plural: str = "") -> str:
    """A number with its word in the right form: ``1 agent``, ``2,000 agents``, ``3 queries``.

    Args:
        number: How many.
        word: What, in the singular.
        plural: The same in the plural, where that is not the singular with an s.
    """
    return f"{number:,} {word if number == 1 else plural or f'{word}s'}"


class Hidden(StrEnum):
    """Sorts of characters that a reader does not see, but a model, an embedder or a terminal does."""

    TAG = "tag"
    """Unicode tags (U+E0000 to U+E007F): a whole invisible alphabet."""
    BIDI = "bidirectional"
    """Overrides, embeddings and isolates, which show text in another order than it is in."""
    CONTROL = "control"
    """Control characters and the sequences of a terminal (ANSI)."""
    INVISIBLE = "invisible"
    """Every other character without a shape: zero-width spaces, fillers, marks of direction, selectors."""


# Unicode's DerivedCoreProperties, Default_Ignorable_Code_Point, less tags and variation selectors; the marks of
# direction are among them, the interlinear annotation is added.
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
# What belongs to its writing: flags of England, Scotland and Wales; joiners after a letter of Arabic or Indic script
# or inside an emoji; one selector after what has variants; the selectors of Mongolian.
_LAWFUL = (
    f"(?<=\U0001f3f4)(?:{_FLAGS})|(?<=[{_JOINING}])[\u200c\u200d](?![{_IGNORABLE}])"
    f"|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])|(?<=[{_SELECTED}])[{_SELECTOR}]|(?<=[\u1820-\u18af])[\u180b-\u180f]"
)
_ESCAPE = r"\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"
_SUSPECT = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_IGNORABLE}{_SELECTOR}\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
_HIDDEN = re.compile(
    f"(?P<lawful>{_LAWFUL})|(?P<newline>\r\n?)|(?P<{Hidden.TAG}>[\U000e0000-\U000e007f]+)"
    f"|(?P<{Hidden.BIDI}>[\u202a-\u202e\u2066-\u2069])"
    f"|(?P<{Hidden.CONTROL}>{_ESCAPE}|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f])"
    f"|(?P<{Hidden.INVISIBLE}>[{_IGNORABLE}{_SELECTOR}])"
)


def shown(text: str, *, most: int | None = LONGEST_TEXT) -> str:
    """The text without what is hidden in it, and no longer than a model should be given.

    Joiners and selectors that belong to their writing (Persian, Indic scripts, emoji) stay. The text is not
    normalised otherwise: a clean text of this length comes back as it is.

    Args:
        text: Any text from outside.
        most: Characters that are kept; None keeps all.
    """
    if _SUSPECT.search(text):
        text = _HIDDEN.sub(_kept, text)
    return text if most is None or len(text) <= most else f"{text[: most - 1]}…"


def hidden_in(text: str) -> dict[Hidden, int]:
    """How many characters of each sort ``shown`` takes out of a text."""
    if not _SUSPECT.search(text):
        return {}
    found: Counter[Hidden] = Counter()
    for match in _HIDDEN.finditer(text):
        if match.lastgroup in set(Hidden):
            found[Hidden(match.lastgroup)] += len(match.group())
    return dict(found)


def escaped(text: str) -> str:
    r"""The text with what is hidden in it written out as ``\x1b`` or ``\u202e``, for a person who has to judge it."""
    return _HIDDEN.sub(lambda match: _kept(match) or match.group().encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """``escaped``, with the ends of lines written out too: nothing in it can pass for a line of ours."""
    return _BREAKS.sub(lambda match: match.group().encode("unicode_escape").decode(), escaped(text))


def written_out(document: str, *, longest: int = 4) -> str:
    """A document with what is hidden in it as ``\\u202e``, which JSON, Cypher, Turtle and N-Triples read as the same.

    Args:
        document: One in which such characters stand within quotation marks only.
        longest: Digits of a character beyond the first 65,536: 8 for ``\\U0001f600``, 4 for two surrogates.
    """
    return _HIDDEN.sub(lambda match: "".join(_codes(match, longest)), document)


def _codes(match: re.Match[str], longest: int) -> Iterator[str]:
    for character in match.group():
        # A sequence for a terminal may go on beyond the quotation mark.
        if match.lastgroup == "lawful" or not _SUSPECT.match(character):
            yield character
        elif ord(character) > 0xFFFF and longest == 8:
            yield f"\\U{ord(character):08x}"
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            yield from (f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def shown_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema as a model is given it.

    Titles and descriptions are cleaned as by ``shown``. Every other string, a keyword's name, a name or a value (of
    ``enum``, ``default``, ``pattern``, ``required`` ...), that hides something or is longer than a text may be is left
    out rather than changed: a tool knows them by every character. Beyond 64 kB only the names, the
    types and the required marks of the parameters are left.
    """
    cleaned = _shown_object(schema)
    if len(json.dumps(cleaned, ensure_ascii=False, default=str)) <= LARGEST_SCHEMA:
        return cleaned
    properties = cleaned.get("properties")
    types = {
        name: {"type": spec["type"]} if isinstance(spec, dict) and isinstance(spec.get("type"), str | list) else {}
        for name, spec in (properties.items() if isinstance(properties, dict) else ())
    }
    return {"type": "object", "properties": types, "required": cleaned.get("required", [])}


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """A Unicode normal form in linear time: of marks that pile up on one character, the first 30 are kept.

    Lone surrogates, which have no form, become question marks.

    Sorting a pile is quadratic, and no writing has one that high (Unicode, UAX #15, Stream-Safe Text Format).
    """
    if text.isascii():
        return text
    encodable = text.encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize(form, _PILED.sub(r"\1", encodable))


def strings_in(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys included."""
    match value:
        case str():
            yield value
        case Mapping():
            for key, item in value.items():
                yield str(key)
                yield from strings_in(item)
        case list() | tuple():
            for item in value:
                yield from strings_in(item)


def split_name(name: str) -> str:
    """``convertLength_to`` as ``convert length to``."""
    return " ".join(re.split(r"[\W_]+", _CAMEL.sub(" ", name))).strip().lower()


def _kept(match: re.Match[str]) -> str:
    return {"lawful": match.group(), "newline": "\n"}.get(match.lastgroup or "", "")


def _shown_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _shown_keyword(key, value)
        for key, value in schema.items()
        if not (_hides(str(key)) or _left_out(key, value))
    }


def _shown_keyword(key: str, value: Any) -> Any:
    if key in _TEXTS and isinstance(value, str):
        return shown(value)
    if key in _LISTS and isinstance(value, list):
        return [item for item in value if not _hides(item)]
    if key in _VALUES:
        return value
    if key in _NAMED and isinstance(value, dict):
        return {name: _shown_part(part) for name, part in value.items() if not _hides(str(name))}
    return _shown_part(value)


def _shown_part(value: Any) -> Any:
    match value:
        case dict():
            return _shown_object(value)
        case list():
            return [_shown_part(item) for item in value if not (isinstance(item, str) and _hides(item))]
        case _:
            return value


def _left_out(key: str, value: Any) -> bool:
    if key in _LISTS:
        return isinstance(value, list) and bool(value) and all(map(_hides, value))
    return (key in _VALUES or (isinstance(value, str) and key not in _TEXTS)) and _hides(value)


def _hides(value: Any) -> bool:
    """Whether a value holds what nobody sees, or more than a model is shown of a text."""
    return any(len(text) > LONGEST_TEXT or hidden_in(text) for text in strings_in(value))
