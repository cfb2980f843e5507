"""The page on the ranking names every setting with its default."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from callsheet.retrievers import SelectSettings

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "retrieval.md"
_ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| (`.+?`(?:, `.+?`)*) \| .+ \|$", re.MULTILINE)


def test_the_table_of_settings_in_the_docs_matches_the_dataclass() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Settings")[2].partition("\n## ")[0]
    rows = dict[str, str]()
    for names, defaults in _ROW.findall(section):
        rows |= zip(names.strip("`").split("`, `"), defaults.strip("`").split("`, `"), strict=True)
    assert rows == {field.name: _written(field.default) for field in fields(SelectSettings)}


def _written(default: object) -> str:
    return f'"{default}"' if isinstance(default, str) else str(default)
