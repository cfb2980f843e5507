"""Checks what callers pass: types, one text or several, and the length of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable

from callsheet.graphs.errors import RequestError, SettingsError
from callsheet.graphs.text.unicode import storable

_LONG_BLANK = re.compile(r"\s{33,}")


def check_type(value: object, kind: type, name: str) -> None:
    """Raises ``SettingsError`` for an argument that is neither None nor of its type."""
    if not isinstance(value, kind | None):
        raise SettingsError(f"{name} must be {kind.__name__}(...), not {type(value).__name__}")


def as_texts(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Returns the texts; a single text counts as one, not as its characters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def bounded(text: str, most: int, setting: str) -> str:
    """Returns a request or a query in which more than 32 blanks in a row become one, or an empty line.

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
