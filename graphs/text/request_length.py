"""What a user asks for, as it enters: bounded, so that nobody's text holds up everybody else's."""

from __future__ import annotations

import re

from callsheet.graphs.catalog.errors import RequestError
from callsheet.graphs.catalog.formats.mcp_format import clean

_LONG_BLANK = re.compile(r"\s{33,}")


def bounded(text: str, most: int, setting: str) -> str:
    """A request or a query, with no more than 32 blanks in a row: a longer run becomes one, or an empty line.

    Args:
        text: As the user wrote it.
        most: Characters that it may have then.
        setting: The setting that says so, to be named.

    Raises:
        RequestError: It is longer.
    """
    text = _LONG_BLANK.sub(lambda run: "\n\n" if "\n" in run.group() else " ", clean(text))
    if len(text) > most:
        raise RequestError(
            f"this has {len(text):,} characters, and no more than {most:,} are taken: shorten it, put what is long "
            f"into a file, or raise the setting {setting!r}"
        )
    return text
