"""Limits the length of requests, so that no user can block the others."""

from __future__ import annotations

import re

from callsheet.graphs.catalog.errors import RequestError
from callsheet.graphs.text.sanitizing import clean

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
