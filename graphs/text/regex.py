"""Regular expressions over text from outside, by an engine whose time is linear in the text: RE2.

It knows neither lookaround nor backreferences, and takes ``\\w``, ``\\d``, ``\\s`` and ``\\b`` for ASCII.
"""

from __future__ import annotations

import re
from typing import cast

import re2


def linear(pattern: str) -> re.Pattern[str]:
    """A pattern with the methods of one of ``re``; texts must be free of lone surrogates.

    Raises:
        re2.error: The engine does not know a construction of the pattern.
    """
    options = re2.Options()
    options.log_errors = False
    return cast("re.Pattern[str]", re2.compile(pattern, options))
