"""Cuts the text of a document into chunks of about 1,000 tokens, between sentences."""

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
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*|\n(?=#{1,6}[^\S\n])|(?m:^#{1,6}[^\S\n][^\n]*\n\s*)")
"""Ends of paragraphs: blank lines, and the lines of Markdown's headings."""
_PAIRED = str.maketrans(dict.fromkeys("\"'()[]{}«»“”„‘’‹›「」『』（）【】•·▪●■◦‣", " "))
_BREAKABLE = re.compile(r".*(?:[;,:；，、。]\s*|\s)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document from its loader: a paragraph, a page, a row; sentences do not continue in the next block.

    Attributes:
        text: Its text; blank lines and headings separate paragraphs.
        page: Its page, from 1, if the document has pages.
    """

    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of one chunk.

    Attributes:
        text: The text.
        ends: The end of each sentence, in characters.
        page: Its first page, if the document has pages.
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
    """Estimated tokens for a chat model: a quarter of the bytes in UTF-8, rounded up.

    The estimate needs no vocabulary and is valid for scripts with one, two and three bytes per character.
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def passages_of(blocks: Iterable[Block], *, tokens: int = CHUNK_TOKENS) -> Iterator[Passage]:
    """Cuts a document into passages of whole sentences, with a maximum number of tokens.

    Only one passage is in memory at a time.

    Args:
        blocks: The text in order.
        tokens: Maximum number of estimated tokens of a passage; longer sentences are cut.

    Source: A-RAG (arXiv 2602.03442), section 3.1: chunks of about 1,000 tokens that end with a sentence.
    """
    sentences: list[str] = []
    size, page = 0, None
    for sentence, on_page in _sentences(blocks):
        cost = estimated_tokens(sentence)
        if sentences and size + cost > tokens:
            yield _passage(sentences, page)
            sentences, size = [], 0
        if not sentences:
            page = on_page
        sentences.append(sentence)
        size += cost
    if sentences:
        yield _passage(sentences, page)


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a text with the white space after each; joined, they are the text again.

    Longer sentences than 1,000 characters (tables, lists without full stops) are cut at the last comma or space.
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
    """The sentences of a paragraph; the last sentence of a window may continue in the next."""
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
    sentences: list[str] = []
    for sentence in _segmented(text, text):
        if sentences and not sentence.strip():
            sentences[-1] += sentence
        elif len(sentence) > _SUSPICIOUS:
            # An unclosed quotation mark or bracket may join several sentences.
            sentences.extend(_segmented(sentence, sentence.translate(_PAIRED)))
        else:
            sentences.append(sentence)
    return sentences or [text]


def _segmented(text: str, model: str) -> Iterator[str]:
    """A text cut where the library cuts ``model``, a text of the same length; its English supports other scripts."""
    from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] (compiled, without stubs)

    start = 0
    for part in segment("en", clean(model)):
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
