"""The results of the three interfaces, as values and as text for a model."""

from __future__ import annotations

from dataclasses import dataclass

from callsheet.retrievers.documents.reading.chunking import estimated_tokens


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk in a search result.

    Attributes:
        chunk: Its id.
        score: Eq. 1 for words, Eq. 3 for meaning.
        snippets: The matching sentences, abbreviated.
        keywords: The keywords that it contains.
    """

    chunk: str
    score: float
    snippets: tuple[str, ...]
    keywords: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The text for a model."""
        keywords = f" holds {', '.join(self.keywords)}" if self.keywords else ""
        snippets = " … ".join(self.snippets) or "(no single sentence holds a keyword)"
        return f"[{self.chunk}]{keywords}: {snippets}"


@dataclass(frozen=True, slots=True)
class Hits:
    """The result of a search.

    Attributes:
        hits: The chunks, best first.
        note: A note for the caller: there are no hits, or a limit applies.
    """

    hits: tuple[Hit, ...]
    note: str = ""

    @property
    def tokens(self) -> int:
        """The retrieved tokens: those of the snippets."""
        return sum(estimated_tokens(snippet) for hit in self.hits for snippet in hit.snippets)

    def __str__(self) -> str:
        """The text for a model."""
        return "\n".join((*map(str, self.hits), *([f"({self.note})"] if self.note else [])))


@dataclass(frozen=True, slots=True)
class Part:
    """One chunk of a reading.

    Attributes:
        chunk: Its id.
        text: Its text; empty if it was read before or does not exist.
        digest: Hash of its text; empty if it does not exist.
        note: Why there is no text.
        page: Its first page, if the document has pages.
    """

    chunk: str
    text: str = ""
    digest: str = ""
    note: str = ""
    page: int | None = None

    def __str__(self) -> str:
        """The text for a model."""
        if not self.text:
            return f"[{self.chunk}] ({self.note})"
        where = f" (page {self.page})" if self.page else ""
        return f"[{self.chunk}]{where}\n{self.text}".rstrip()


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading.

    Attributes:
        parts: The chunks in the requested order, each with its neighbours.
        note: A note for the caller.
    """

    parts: tuple[Part, ...]
    note: str = ""

    @property
    def read(self) -> dict[str, str]:
        """Update of the context tracker: id -> digest of every chunk with text."""
        return {part.chunk: part.digest for part in self.parts if part.text}

    @property
    def tokens(self) -> int:
        """The retrieved tokens: those of the texts, without chunks that were read before."""
        return sum(estimated_tokens(part.text) for part in self.parts if part.text)

    def __str__(self) -> str:
        """The text for a model."""
        return "\n\n".join((*map(str, self.parts), *([f"({self.note})"] if self.note else [])))
