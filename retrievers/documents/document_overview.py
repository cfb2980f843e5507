"""A short overview of a folder of documents, without reading all of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.sanitizing import clean
from callsheet.retrievers.documents.phrases import content_words
from callsheet.retrievers.documents.reading.folder_scan import documents_in
from callsheet.retrievers.documents.reading.loaders import LOADERS

MOST_TOPICS, MOST_TERMS = 300, 600
_HEAD, _DOCUMENTS = 20_000, 200  # characters to read of a document, and number of documents
_HEADING = linear(r"(?m)^#{1,3}\s+(.{2,80}?)\s*#*$")
_AS_TEXT = (".md", ".markdown", ".txt", ".text", ".rst", ".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class Overview:
    """The subject of a folder.

    Attributes:
        topics: The headings of its documents, or their names, at most 300 characters.
        terms: The words in most of its paragraphs, at most 600 characters; from text files only.
    """

    topics: str
    terms: str = ""


def overview_of(folder: Path) -> Overview:
    """Reads the names of a folder's documents, and the beginnings of those in plain text.

    Args:
        folder: The documents.

    Raises:
        CatalogError: There is no such folder.
    """
    topics: dict[str, None] = {}
    terms: Counter[str] = Counter()
    for document in documents_in(folder, set(LOADERS)).documents[:_DOCUMENTS]:
        head = _head(document.path) if document.path.suffix.lower() in _AS_TEXT else ""
        headings = [heading.rstrip(".").replace(". ", ", ") for heading in _HEADING.findall(head)]
        topics |= dict.fromkeys(headings or [re.sub(r"[\W_]+", " ", document.path.stem).strip()])
        terms.update(word for paragraph in head.split("\n\n") for word in content_words(paragraph))
    common = (word for word, _ in terms.most_common(MOST_TERMS))
    return Overview(
        "; ".join(_within(topics, MOST_TOPICS)) or "no documents yet", ", ".join(_within(common, MOST_TERMS))
    )


def _within(items: Iterator[str] | dict[str, None], most: int) -> Iterator[str]:
    """The first items, up to this total length."""
    length = 0
    for item in items:
        length += len(item) + 2
        if length > most:
            return
        yield item


def _head(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return str(clean(file.read(_HEAD)))
