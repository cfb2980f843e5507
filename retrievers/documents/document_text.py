"""The text of documents: chunks of about 1,000 tokens that end with a sentence, and words that tell the subject."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import accumulate

from callsheet.graphs.text.sanitizing import clean, normalized

CHUNK_TOKENS = 1_000
BYTES_PER_TOKEN = 4
LONGEST_SENTENCE = 1_000
_WINDOW = 4_000  # characters that the splitter sees at once: one unclosed quotation mark joins all that follow it
_SUSPICIOUS = 400
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*|\n(?=#{1,6}[^\S\n])|(?m:^#{1,6}[^\S\n][^\n]*\n\s*)")
"""Ends of paragraphs: blank lines, and the lines of Markdown's headings."""
_PAIRED = str.maketrans(dict.fromkeys("\"'()[]{}«»“”„‘’‹›「」『』（）【】•·▪●■◦‣", " "))
HAS_SENTENCEX = find_spec("sentencex") is not None
"""Whether the extra ``documents`` tells where sentences end; without it, full stops do."""
_FULL_STOP = re.compile(r".+?(?:[.!?…]+[\"')\]»”’]*\s+|[。！？।؟]+[」』”’）]*\s*|\Z)", re.DOTALL)
_BREAKABLE = re.compile(r".*(?:[;,:；，、。]\s*|\s)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document from its loader: a paragraph, a page (from 1), a row; sentences end with it.

    Blank lines and headings separate paragraphs.
    """

    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of one chunk, the end of each sentence in characters, and its first page, if there are pages."""

    text: str
    ends: tuple[int, ...]
    page: int | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """Its sentences, without the white space around them."""
        starts = (0, *self.ends[:-1])
        return tuple(self.text[start:end].strip() for start, end in zip(starts, self.ends, strict=True))


def estimated_tokens(text: str) -> int:
    """Estimated tokens for a chat model: a quarter of the bytes in UTF-8, rounded up; so in any script."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def passages_of(blocks: Iterable[Block], *, tokens: int = CHUNK_TOKENS) -> Iterator[Passage]:
    """Cuts a document into passages of whole sentences; only one passage is in memory at a time.

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
        yield from ((sentence, block.page) for sentence in (*most, f"{last}\n"))


def _passage(sentences: list[str], page: int | None) -> Passage:
    return Passage("".join(sentences), tuple(accumulate(map(len, sentences))), page)


def _of_paragraph(text: str) -> Iterator[str]:
    """The sentences of a paragraph; the last sentence of a window may continue in the next."""
    rest = ""
    for start in range(0, len(text), _WINDOW):
        *whole, rest = _split(rest + text[start : start + _WINDOW])
        for sentence in whole:
            yield from _cut(sentence)
        if len(rest) > _WINDOW:
            *whole, rest = _cut(rest)
            yield from whole
    yield from _cut(rest)


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
    """A text cut where ``model``, a text of the same length, is cut; the library's English supports other scripts."""
    parts: Iterable[str] = _FULL_STOP.findall(model)
    if HAS_SENTENCEX:
        from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] (compiled, without stubs)

        parts = segment("en", clean(model))
    start = 0
    for part in parts:
        yield text[start : start + len(part)]
        start += len(part)


def _cut(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST_SENTENCE:
        match = _BREAKABLE.match(sentence, 0, LONGEST_SENTENCE)
        cut = match.end() if match and match.end() > LONGEST_SENTENCE // 2 else LONGEST_SENTENCE
        yield sentence[:cut]
        sentence = sentence[cut:]
    if sentence:
        yield sentence


_LEAST_WORD, _LEAST_NAME, _LONGEST_NAME = 4, 2, 60
_JOINING = r"(?:of|the|and|de|la|von|van|der|du|&)"
_CAPITAL = r"(?:(?:[A-Z]\.)+|[^\W\d_a-zß-ÿа-я][\w'’&-]*(?:\.\w+)*|\d[\w.,'’-]*\w|\d)"
_NAME = re.compile(rf"\"[^\"\n]{{2,60}}\"|“[^”\n]{{2,60}}”|{_CAPITAL}(?:[ \t]+(?:{_JOINING}[ \t]+){{0,2}}{_CAPITAL})*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_WORD = re.compile(r"[^\W_]+")
_QUOTES = '"“'
_EDGE = " .,?!;:'\"“”‘’"
STOP_WORDS = frozenset(
    """
    a about after all also although an and another any are as at be because been before being between both but by
    can could did do does during each every for from had has have he her hers him his how however i if in into is it
    its itself just many me more most much my no nor not of off on once only or other our out over own same several
    she should since so some such than that the their them then there these they this those through to too under
    until up very was we were what when where which while who whom whose why will with would you your
    """.split()
)


def plain(text: str) -> str:
    """A text in the form for comparing words: lower case, canonical characters, single spaces."""
    folded = text.lower() if text.isascii() else normalized("NFD", text).casefold()
    return " ".join(normalized("NFC", folded).split())


def names(text: str) -> list[str]:
    """Likely names in a text: quotations, runs of capitalized words, numbers; without repetitions, in order.

    Names joined by "and" also count one by one. Chinese, Japanese and Korean have no capitals and so no names.
    """
    result: dict[str, None] = {}
    for match in _NAME.finditer(text):
        if _CJK.match(match.group()):
            continue
        whole = _trimmed(match.group())
        parts = map(_trimmed, whole.split(" and ")) if " and " in whole else ()
        result |= dict.fromkeys(name for name in (whole, *parts) if _LEAST_NAME <= len(name) <= _LONGEST_NAME)
    return list(result)


def first_line(text: str) -> str:
    """The first line of a text without the marks of a heading."""
    return text.lstrip().split("\n", 1)[0].strip("#= \t")


def content_words(text: str) -> list[str]:
    """The content words of a text, plain, without repetitions; Chinese, Japanese and Korean in pairs of characters."""
    return list(dict.fromkeys(_content_words(plain(text))))


def _content_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        if (run := _CJK.search(word)) is not None:
            yield from (run.group()[i : i + 2] for i in range(max(1, len(run.group()) - 1)))
        elif len(word) >= _LEAST_WORD and word not in STOP_WORDS:
            yield word


def _trimmed(name: str) -> str:
    """A name without quotation marks and without stop words at its ends."""
    words = name.strip(_EDGE).split()
    if name[:1] in _QUOTES:
        return " ".join(words)
    telling = [at for at, word in enumerate(words) if word.lower().strip(_EDGE) not in STOP_WORDS]
    words = words[telling[0] : telling[-1] + 1] if telling else []
    return re.sub(r"['’]s$", "", " ".join(words).strip(_EDGE))
