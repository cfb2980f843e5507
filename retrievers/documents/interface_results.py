"""What the three interfaces give back, as values and as the text that a model reads."""

from __future__ import annotations

from dataclasses import dataclass

from callsheet.retrievers.documents.reading.chunking import estimated_tokens


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found.

    Attributes:
        chunk: Its id.
        score: Eq. 1 for words, Eq. 3 for meaning.
        snippets: The sentences that it was found by, the long ones abbreviated.
        keywords: Those of the keywords that it holds.
    """

    chunk: str
    score: float
    snippets: tuple[str, ...]
    keywords: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As a model reads it."""
        held = f" holds {', '.join(self.keywords)}" if self.keywords else ""
        shown = " … ".join(self.snippets) or "(no single sentence holds a keyword)"
        return f"[{self.chunk}]{held}: {shown}"


@dataclass(frozen=True, slots=True)
class Hits:
    """What a search found.

    Attributes:
        hits: The chunks, best first.
        note: What the caller should know: nothing was found, a limit was met.
    """

    hits: tuple[Hit, ...]
    note: str = ""

    @property
    def tokens(self) -> int:
        """The retrieved tokens: those of the snippets."""
        return sum(estimated_tokens(snippet) for hit in self.hits for snippet in hit.snippets)

    def __str__(self) -> str:
        """As a model reads it."""
        return "\n".join((*map(str, self.hits), *([f"({self.note})"] if self.note else [])))


@dataclass(frozen=True, slots=True)
class Part:
    """One chunk of a reading.

    Attributes:
        chunk: Its id.
        text: All of it; empty when it was read before or is not there.
        digest: What tells its text from another one of the same id; empty when it is not there.
        note: Why there is no text.
        page: The page that it begins on, if it has one.
    """

    chunk: str
    text: str = ""
    digest: str = ""
    note: str = ""
    page: int | None = None

    def __str__(self) -> str:
        """As a model reads it."""
        if not self.text:
            return f"[{self.chunk}] ({self.note})"
        where = f" (page {self.page})" if self.page else ""
        return f"[{self.chunk}]{where}\n{self.text}".rstrip()


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read.

    Attributes:
        parts: The chunks in the order they were asked for, each with its neighbours around it.
        note: What the caller should know.
    """

    parts: tuple[Part, ...]
    note: str = ""

    @property
    def read(self) -> dict[str, str]:
        """The context tracker's news: id -> digest of every chunk whose text is here."""
        return {part.chunk: part.digest for part in self.parts if part.text}

    @property
    def tokens(self) -> int:
        """The retrieved tokens: those of the texts; a chunk that was read before costs none."""
        return sum(estimated_tokens(part.text) for part in self.parts if part.text)

    def __str__(self) -> str:
        """As a model reads it."""
        return "\n\n".join((*map(str, self.parts), *([f"({self.note})"] if self.note else [])))
