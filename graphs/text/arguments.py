"""Checks the arguments of callers: their types, single texts or lists, and the length of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable

from callsheet.graphs.errors import RequestError, SettingsError
from callsheet.graphs.text.unicode import storable

_LONG_BLANK = re.compile(r"\s{33,}")


def check_type(value: object, kind: type, name: str) -> None:
    """Raises a ``SettingsError`` if an argument is neither None nor of this type."""
    if not isinstance(value, kind | None):
        raise SettingsError(f"{name} must be {kind.__name__}(...), not {type(value).__name__}")


def as_texts(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Returns a list of texts; a single text becomes a list of one, not of its characters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def bounded(text: str, most: int, setting: str) -> str:
    """Returns a request with long runs of blanks shortened; raises a ``RequestError`` if it is still too long.

    More than 32 blanks in a row become one, or an empty line. ``setting`` is the name of the limit in the error.

    Raises:
        RequestError: It is longer than the ``setting`` allows.
    """
    text = _LONG_BLANK.sub(lambda run: "\n\n" if "\n" in run.group() else " ", storable(text))
    if len(text) > most:
        raise RequestError(
            f"this has {len(text):,} characters, the maximum is {most:,}: shorten it, move long parts "
            f"to a file, or raise the setting {setting!r}"
        )
    return text
