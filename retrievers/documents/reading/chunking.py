"""From a document's text to chunks of about 1,000 tokens, cut between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from callsheet.graphs.text.sanitizing import clean

CHUNK_TOKENS = 1_000
BYTES_PER_TOKEN = 4
LONGEST_SENTENCE = 1_000
_WINDOW = 4_000  # characters that the splitter sees at once: one unclosed quotation mark joins all that follow it
_SUSPICIOUS = 400
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_PAIRED = str.maketrans(dict.fromkeys("\"'()[]{}«»“”„‘’‹›「」『』（）【】•·▪●■◦‣", " "))
_BREAKABLE = re.compile(r".*(?:[;,:；，、。]\s*|\s)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document as its loader gives it: a paragraph, a page, a row; sentences do not run on between two.

    Attributes:
        text: Its text; blank lines in it part paragraphs.
        page: The page that it is from, counted from 1, where the document has pages.
    """

    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of one chunk.

    Attributes:
        text: All of it, sentence after sentence.
        ends: Where each sentence ends in it, in characters.
        page: The page that it begins on, if it has one.
    """

    text: str
    ends: tuple[int, ...]
    page: int | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """Its sentences, without the white space around them."""
        starts = (0, *self.ends[:-1])
        return tuple(self.text[start:end].strip() for start, end in zip(starts, self.ends, strict=True))


def estimated_tokens(text: str) -> int:
    """About how many tokens a chat model counts: a quarter of the bytes in UTF-8, rounded up.

    It needs no vocabulary, and holds for scripts of one, two and three bytes a character.
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def passages_of(blocks: Iterable[Block], *, tokens: int = CHUNK_TOKENS) -> Iterator[Passage]:
    """Cuts a document into passages of at most so many tokens, each of whole sentences.

    Only one passage is held at a time, however long the document is.

    Args:
        blocks: Its text in order.
        tokens: Estimated tokens of a passage; a sentence that is longer by itself is cut.

    Source: A-RAG (arXiv 2602.03442), section 3.1: chunks of about 1,000 tokens that end with a sentence.
    """
    held: list[str] = []
    size, page = 0, None
    for sentence, on_page in _sentences(blocks):
        cost = estimated_tokens(sentence)
        if held and size + cost > tokens:
            yield _passage(held, page)
            held, size = [], 0
        if not held:
            page = on_page
        held.append(sentence)
        size += cost
    if held:
        yield _passage(held, page)


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a text with the white space that follows each: joined they are the text again.

    None is longer than 1,000 characters: what seems so (a table, a list without full stops) is cut at the last comma
    or space before that.
    """
    start = 0
    for gap in _PARAGRAPH.finditer(text):
        yield from _of_paragraph(text[start : gap.end()])
        start = gap.end()
    if start < len(text):
        yield from _of_paragraph(text[start:])


def _sentences(blocks: Iterable[Block]) -> Iterator[tuple[str, int | None]]:
    for block in blocks:
        text = block.text.strip()
        if not text:
            continue
        *most, last = sentences_of(text)
        for sentence in most:
            yield sentence, block.page
        yield f"{last}\n", block.page


def _passage(sentences: list[str], page: int | None) -> Passage:
    ends, end = [], 0
    for sentence in sentences:
        end += len(sentence)
        ends.append(end)
    return Passage("".join(sentences), tuple(ends), page)


def _of_paragraph(text: str) -> Iterator[str]:
    """The last sentence of each window is held back, for it may go on in the next."""
    rest = ""
    for start in range(0, len(text), _WINDOW):
        *whole, rest = _split(rest + text[start : start + _WINDOW])
        for sentence in whole:
            yield from _bounded(sentence)
        if len(rest) > _WINDOW:
            *whole, rest = _bounded(rest)
            yield from whole
    yield from _bounded(rest)


def _split(text: str) -> list[str]:
    found: list[str] = []
    for sentence in _segmented(text, text):
        if found and not sentence.strip():
            found[-1] += sentence
        elif len(sentence) > _SUSPICIOUS:
            # A quotation mark or bracket that is never closed may hold it together.
            found.extend(_segmented(sentence, sentence.translate(_PAIRED)))
        else:
            found.append(sentence)
    return found or [text]


def _segmented(text: str, seen: str) -> Iterator[str]:
    """A text cut where the library would cut ``seen``, a text of the same length; its English knows other scripts."""
    from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] (compiled, without stubs)

    start = 0
    for part in segment("en", clean(seen)):
        yield text[start : start + len(part)]
        start += len(part)


def _bounded(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST_SENTENCE:
        match = _BREAKABLE.match(sentence, 0, LONGEST_SENTENCE)
        cut = match.end() if match and match.end() > LONGEST_SENTENCE // 2 else LONGEST_SENTENCE
        yield sentence[:cut]
        sentence = sentence[cut:]
    if sentence:
        yield sentence
