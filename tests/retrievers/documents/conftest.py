"""A folder of documents, and an embedder that knows a text by its words alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from callsheet.retrievers.documents import DocumentIndex

GUIDE = {
    "leave.md": "# Leave\n\nEvery employee has 25 days of paid leave a year. Anna Berg signs requests for leave.\n",
    "people.md": "# Anna Berg\n\nAnna Berg leads the finance team in Oslo. Her deputy is Piet Mulder.\n",
    "deep/travel.txt": "Trains are booked in second class. The allowance for meals is 28 euro a day.\n",
}


class WordEmbeddings(Embeddings):
    """The sum of one fixed random vector a word; it remembers what it was asked for."""

    def __init__(self, size: int = 64) -> None:
        self.name = f"words-{size}"
        self.size = size
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.extend(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        total = np.full(self.size, 1e-6)
        for word in re.findall(r"\w+", text.casefold()):
            seed = int.from_bytes(sha256(word.encode()).digest()[:4])
            total += np.random.default_rng(seed).normal(size=self.size)
        return total.tolist()


@pytest.fixture
def embedder() -> WordEmbeddings:
    return WordEmbeddings()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str | bytes]], Path]:
    """Writes files into a folder of their own, and gives the folder."""

    def written(files: dict[str, str | bytes]) -> Path:
        folder = tmp_path / "docs"
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    return written


@pytest.fixture
def made(write: Callable[[dict[str, str | bytes]], Path], embedder: WordEmbeddings) -> Callable[..., DocumentIndex]:
    """The index in memory of documents that are given by name; the guide where none are."""

    def index(files: dict[str, str | bytes] | None = None, **how: object) -> DocumentIndex:
        made = DocumentIndex(write(files or dict(GUIDE)), embeddings=embedder, index=":memory:", **how)  # type: ignore[arg-type]
        made.sync()
        return made

    return index
