"""Regular expressions for text from outside, by RE2, whose time is linear in the length of the text.

RE2 has no lookaround and no backreferences, and its ``\\w``, ``\\d``, ``\\s`` and ``\\b`` match ASCII only.
"""

from __future__ import annotations

import re
from typing import cast

import re2


def linear(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern by RE2; the result has the methods of ``re.Pattern``.

    Raises an ``re2.error`` for an invalid pattern. Texts must not contain lone surrogates.
    """
    options = re2.Options()
    options.log_errors = False
    return cast("re.Pattern[str]", re2.compile(pattern, options))
