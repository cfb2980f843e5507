"""Arguments of callers: their types, and the length of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable

from callsheet.graphs.catalog.errors import RequestError, SettingsError
from callsheet.graphs.text.sanitizing import clean


def check_type(value: object, kind: type, name: str) -> None:
    """Refuses an argument that is neither None nor of its type.

    Raises:
        SettingsError: It has another type; the message names the argument and both types.
    """
    if not isinstance(value, kind | None):
        raise SettingsError(f"{name} must be {kind.__name__}(...), not {type(value).__name__}")


def listed(texts: str | Iterable[str]) -> tuple[str, ...]:
    """The texts; a single text counts as one, not as its characters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


_LONG_BLANK = re.compile(r"\s{33,}")


def bounded(text: str, most: int, setting: str) -> str:
    """A request or a query in which more than 32 blanks in a row become one blank, or an empty line.

    Raises:
        RequestError: The text is longer.
    """
    text = _LONG_BLANK.sub(lambda run: "\n\n" if "\n" in run.group() else " ", clean(text))
    if len(text) > most:
        raise RequestError(
            f"this has {len(text):,} characters, the maximum is {most:,}: shorten it, move long parts "
            f"to a file, or raise the setting {setting!r}"
        )
    return text
