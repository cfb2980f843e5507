"""Converts texts and JSON values to forms that UTF-8 and a database can store, and to normal forms."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.regex import linear

DEEPEST = 100
_MARKS = linear(r"(\pM{30})\pM+")


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Returns a Unicode normal form in linear time: at most 30 combining marks stay on one character.

    Lone surrogates become question marks. Sorting combining marks takes quadratic time, and no script has that many
    (Unicode, UAX #15, Stream-Safe Text Format).
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _MARKS.sub(r"\1", encodable(text)))


def encodable(text: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot encode, by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def storable(text: str) -> str:
    """Replaces lone surrogates and NUL, which PostgreSQL cannot store, by question marks."""
    return encodable(text).replace("\0", "?")


def clean(value: Any, *, deepest: int = DEEPEST, text: Callable[[str], str] = encodable) -> Any:
    """Returns a JSON value in which ``text`` is applied to every string; by default, strings become ``encodable``.

    Raises:
        CatalogError: The value is nested more than ``deepest`` levels deep.
    """
    if deepest < 0:
        raise CatalogError(f"nested more than {DEEPEST} levels deep")
    match value:
        case str():
            return text(value)
        case dict():
            return {clean(key, text=text): clean(item, deepest=deepest - 1, text=text) for key, item in value.items()}
        case list():
            return [clean(item, deepest=deepest - 1, text=text) for item in value]
        case _:
            return value


def strings_in(value: Any) -> Iterator[str]:
    """Yields all strings of a JSON value, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            if isinstance(item, str):  # most are: a generator for each would take longer
                yield item
            else:
                yield from strings_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item)
