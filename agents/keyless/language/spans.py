"""Spans of text that must not be split: quotations, addresses, file names, numbers."""

from __future__ import annotations

import re

QUOTED = re.compile(
    r"```.+?```|`[^`]+`|\"[^\"\n]+\"|“[^”]+”|„[^“”]+[“”]|«[^»]+»|(?<![\w'])'(?!\s)(?:[^'\n]|(?<=\w)'(?=\w))+'(?!\w)"
    r"|‘[^’]+’(?!\w)",
    re.DOTALL,
)
URL = re.compile(r"\b(?:https?|ftp|file|s3|data|mailto)://?[^\s<>\"'`，。；]*[^\s<>\"'`.,;:!?)\]，。；]")
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
PATH = re.compile(
    r"(?<![\w@./\\])(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[\w.@+-]+[/\\])*[\w.@+-]*[\w@+-]"
    r"|(?<![\w@.+-])[\w.+-]*\w/(?:[\w.@+-]+/)*(?:[\w@+-][\w.@+-]*)?(?<![.])"
    r"|(?<![\w@.+-])[\w+-][\w.+-]*\.(?!\d)[A-Za-z]\w{0,9}\b(?![(@])"
)
CLOCK = re.compile(
    r"\b(?P<hour>\d{1,2})(?:[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?)?\s*(?P<half>[ap])\.?m\b\.?"
    r"|\b(?P<hour24>[01]?\d|2[0-3]):(?P<minute24>[0-5]\d)(?::[0-5]\d)?\b|\b(?P<word>noon|midnight)\b",
    re.IGNORECASE,
)
SQL = re.compile(
    r"\b(?:SELECT\b.+?\bFROM\b|INSERT\s+INTO\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b|CREATE\s+TABLE\b|WITH\s+\w+\s+AS\b)"
    r".*?(?=;|$|[.?!]?\s+(?:and\s+)?then\b|,\s+and\b)",
    re.DOTALL,
)
_DECIMAL = re.compile(r"(?<!\d)\d+(?:[.,]\d+)+")
_BRACKETS = re.compile(r"\((?!\w\))[^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|Dr|Mr|Mrs|Ms|No|St)\.")

MOST = 8_000
"""Characters that the rules read: some patterns take quadratic time."""
_PROTECTED = (QUOTED, URL, EMAIL, PATH, CLOCK, _DECIMAL, _ABBREVIATION, _BRACKETS, SQL)


def mask(text: str) -> str:
    """The text at its own length, with protected spans blanked to ``¤`` so that no rule splits them."""
    for pattern in _PROTECTED:
        text = pattern.sub(lambda match: "¤" * len(match.group()), text)
    return text
