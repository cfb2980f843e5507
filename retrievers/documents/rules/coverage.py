"""What of a question a few sentences account for: its words, its names and numbers, and the kind of thing asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from callsheet.retrievers.documents.rules.phrases import STOP_WORDS, names, plain
from callsheet.retrievers.index.lexical_index import tokens

MOST = 2
"""Sentences of an answer: with a third, twice as many questions that nothing answers would be answered."""
_COSINE = 0.5  # beside 1 for all needs, when the first sentence is chosen
_FRAME = re.compile(
    r"^\W*(?:(?:please|can|could|would|will|do|i|we|you|want|need|like|to|know)\s+)*"
    r"(?:look|find|tell|say|show|give|check|search|ask|read|see|explain|know)\b"
    r"(?P<rest>.*?)(?=\b(?:what|which|how|who|whose|whom|when|where|why|whether|at what|in which)\b|$)",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W_]+(?:\.[^\W_]+)*")
_OWNER = re.compile(r"['’]s?\b")
_EMPTY = frozenset("am anything let me my myself please something there us want whether".split())
_AND_OR = re.compile(r"\b(?:and|or)\b", re.IGNORECASE)
_NOT = re.compile(r"\b(?:no|not|never|nobody|none|nothing|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE)
_COUNT = (
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand million "
    "half dozen quarter once twice"
)
_DAY = (
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday today tomorrow yesterday noon midnight"
)
_MOMENT = f"{_DAY} morning afternoon evening night daily before after during until since"


def _any_of(words: str) -> re.Pattern[str]:
    return re.compile(rf"\d|\b(?:{words.replace(' ', '|')})\b", re.IGNORECASE)


_NUMBERS, _MOMENTS = _any_of(_COUNT), _any_of(f"{_COUNT} {_MOMENT}")
_CLOCKS = re.compile(
    r"\d[:.]\d\d|\d\s*[ap]\.?m\b|\bo'?clock\b|\b(?:noon|midnight)\b|\bhalf past\b|\bquarter", re.IGNORECASE
)
_WHEN = re.compile(
    rf"{_CLOCKS.pattern}|\b(?:\d{{4}}|\d{{1,2}}(?:st|nd|rd|th))\b|\b(?:{_DAY.replace(' ', '|')})\b", re.IGNORECASE
)
_EXTENTS = re.compile(
    rf"(?:\d|\b(?:{_COUNT.replace(' ', '|')})\b)\W*(?:an? )?"
    r"(?:s|sec|min|h|d|m|km|cm|mm|mi|ft|yd|second|minute|hour|day|week|month|year|decade|centur|mile|metre|meter|feet|foot|"
    r"yard|inch|kilomet|centimet|light[- ]year|page|step|block)(?:\b|s\b|\w{2,})",
    re.IGNORECASE,
)
_ASKS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (re.compile(r"\bhow (?:long|far|old)\b", re.I), _EXTENTS),
    (re.compile(r"\bhow (?:many|much|often|high|large|big|tall|fast|late|early)\b", re.I), _NUMBERS),
    (re.compile(r"\b(?:what|which) (?:time|hour) (?!limit|zone)", re.I), _CLOCKS),
    (re.compile(r"\bwhen\b", re.I), _WHEN),
    (re.compile(r"\b(?:what|which) (?:date|day|month|year)\b", re.I), _MOMENTS),
)
_ASKS_WHO = re.compile(r"\b(?:who|whom|whose)\b", re.I)
_KIND_NUMBER = frozenset("number amount".split())
_KIND_MOMENT = frozenset("time date day hour month year".split())
_KIND_NAME = frozenset("name person people place".split())
_ASKED_THING = re.compile(r"\b(?:how (?:many|much)|what|which) ([^\W\d_]+)", re.I)
_UNIT = re.compile(r"\d\s*([^\W\d_]{1,4})\b")


@dataclass(frozen=True)
class Sentence:
    """A sentence with what it stands under.

    Attributes:
        text: The sentence, white space as single spaces.
        heading: The headings that it stands under, and the name of its file.
        cosine: Its cosine with the question.
    """

    text: str
    chunk: str
    heading: str
    cosine: float

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its words and its headings'."""
        return frozenset(tokens(f"{self.text}\n{self.heading}"))

    @cached_property
    def words(self) -> str:
        """Its words, plain, with a blank before and behind each."""
        return _spaced(self.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in it, each as in ``words``: no numbers, and no single word at its beginning."""
        first = self.text.partition(" ")[0].strip(" .,:;")
        return frozenset(_spaced(name) for name in names(self.text) if name != first and not name[0].isdigit())

    @cached_property
    def titles(self) -> frozenset[str]:
        """The names in its headings, each as in ``words``."""
        return frozenset(_spaced(name) for name in names(self.heading) if not name[0].isdigit())


def _spaced(text: str) -> str:
    return f" {' '.join(_WORD.findall(plain(text)))} "


Test = Callable[[Sentence], bool]


@dataclass(frozen=True, slots=True)
class Need:
    """A part of a question that has to be accounted for.

    Attributes:
        text: As the question says it.
        covered: Whether a sentence accounts for it.
        required: Whether nothing is an answer that leaves it out: a name, a number, a negation, the kind asked for.
        kind: Whether it is no word of the question, but the kind asked for or a negation.
    """

    text: str
    covered: Test
    required: bool = False
    kind: bool = False


def needs_of(question: str) -> list[Need]:
    """The needs of a question, but for words that say nothing; an order to look it up is no part of it."""
    asked = _unframed(question)
    return [*_words(asked), *_kinds(asked)]


def _unframed(question: str) -> str:
    """Without "look up in the guide" and the like before what is asked, where it holds no name and no number."""
    frame = _FRAME.match(question)
    if frame is None or re.search(r"[A-Z\d\"“]", frame["rest"]):
        return question
    return question[frame.end() :] or frame["rest"]


def _words(asked: str) -> Iterator[Need]:
    named = {plain(word): _together(name) for name in names(asked) for word in _WORD.findall(name)}
    units = {plain(word) for word in _ASKED_THING.findall(asked)}
    seen = {plain(word) for asks, _ in _ASKS[:2] for found in asks.findall(asked) for word in found.split()}
    for word in _WORD.findall(_OWNER.sub(" ", asked)):
        key = plain(word)
        if key in STOP_WORDS or key in _EMPTY or key in seen:
            continue
        seen.add(key)
        test = _test_of(word, asked, unit=key in units)
        if key in named:
            yield Need(word, partial(_both, test, named[key]), required=True)
        else:
            yield Need(word, test, required=not word.isalpha())


def _both(one: Test, other: Test, sentence: Sentence) -> bool:
    return one(sentence) and other(sentence)


def _together(name: str) -> Test:
    """Whether a sentence holds the whole name; of a name of three words and more, one may be missing."""
    stems = {stem for word in _WORD.findall(name) if plain(word) not in STOP_WORDS for stem in tokens(word)}
    least = len(stems) - (len(stems) > 2)
    return lambda sentence: len(stems & sentence.stems) >= least


def _test_of(word: str, asked: str, *, unit: bool) -> Test:
    """Whether a sentence holds a word, or what the word asks for."""
    stems, key = frozenset(tokens(word)), plain(word)
    if word[0].isdigit():
        number = re.compile(rf"(?<![\d.,:]){re.escape(word)}(?!\d|[.,:]\d)")
        return lambda sentence: bool(number.search(f"{sentence.heading} {sentence.text}"))
    for kinds, pattern in ((_KIND_NUMBER, _NUMBERS), (_KIND_MOMENT, _MOMENTS)):
        if key in kinds or key.removesuffix("s") in kinds:
            return lambda sentence: stems <= sentence.stems or bool(pattern.search(sentence.text))
    if key in _KIND_NAME or key.removesuffix("s") in _KIND_NAME:
        return lambda sentence: stems <= sentence.stems or _names_another(sentence, asked)
    return lambda sentence: stems <= sentence.stems or (unit and _abbreviated(key, sentence.text))


def _abbreviated(word: str, text: str) -> bool:
    """Whether a unit after a number is short for a word: ``25 km`` for kilometres."""
    return any(_short_for(unit, word) for unit in _UNIT.findall(plain(text)))


def _short_for(unit: str, word: str) -> bool:
    letters = iter(word)
    return unit[0] == word[0] and len(unit) < len(word) and all(letter in letters for letter in unit)


def _names_another(sentence: Sentence, asked: str) -> bool:
    """Whether a sentence has a name that the question does not have."""
    known = plain(asked)
    return any(plain(name) not in known for name in names(sentence.text))


def _kinds(asked: str) -> Iterator[Need]:
    """What kind of thing is asked for, and whether what is so or what is not so."""
    for asks, pattern in (*_ASKS, (_NOT, _NOT)):
        if found := asks.search(asked):
            yield Need(found.group(), partial(_matches, pattern), required=True, kind=True)
    if found := _ASKS_WHO.search(asked):
        stems = frozenset(tokens(asked))
        yield Need(found.group(), lambda sentence: _has_subject(sentence, asked, stems), required=True, kind=True)


def _matches(pattern: re.Pattern[str], sentence: Sentence) -> bool:
    return bool(pattern.search(sentence.text))


def _has_subject(sentence: Sentence, asked: str, stems: frozenset[str]) -> bool:
    """Whether a sentence says who: by a name, or by a word before the first that it shares with the question."""
    if _names_another(sentence, asked):
        return True
    before: list[str] = []
    for word in _WORD.findall(sentence.text):
        if stems.intersection(tokens(word)) and plain(word) not in STOP_WORDS:
            return bool(before)
        before += [] if plain(word) in STOP_WORDS else [word]
    return False


def joined(needs: Sequence[Need], sentences: Sequence[Sentence], asked: str, *, most: int = MOST) -> list[Sentence]:
    """The sentences that together account for most of a question, the best first.

    A further sentence joins only where it belongs to one before it. Two sentences that merely hold a word each would
    cover nearly anything.
    """
    if not sentences or not needs:
        return []
    chosen = [max(sentences, key=lambda one: share(needs, [one]) + _COSINE * one.cosine)]
    while len(chosen) < most:
        found = [one for one in sentences if one not in chosen and _belongs(one, chosen, needs, asked)]
        best = max(found, key=lambda one: (share(needs, [*chosen, one]), one.cosine), default=None)
        if best is None or share(needs, [*chosen, best]) <= share(needs, chosen):
            break
        chosen.append(best)
    return chosen


def _belongs(one: Sentence, chosen: Sequence[Sentence], needs: Sequence[Need], asked: str) -> bool:
    """Whether a sentence is about what another is about.

    It and another hold a name that the question does not, in the text of one of them at least; or the question speaks
    of several names, joined by "and" or "or", and each of the two holds one of these.
    """
    known = _spaced(asked)
    for other in chosen:
        bridges = (other.names & (one.names | one.titles)) | (other.titles & one.names)
        bridges |= {name for name in other.names | other.titles if name in one.words}
        if any(name not in known for name in bridges):
            return True
    named = [need for need in needs if need.required and not need.kind and need.text[0].isalpha()]
    lacking = [need for need in named if not holds(chosen, need)]
    several = _AND_OR.search(asked) and any(holds(chosen, need) for need in named)
    return bool(several) and any(need.covered(one) for need in lacking)


def grounded(needs: Sequence[Need], sentences: Sequence[Sentence]) -> bool:
    """Whether some of these sentences holds a word of the question itself, not only under such a heading."""
    bare = [replace(sentence, heading="") for sentence in sentences]
    return any(holds(bare, need) for need in needs if not need.kind)


def share(needs: Sequence[Need], sentences: Sequence[Sentence]) -> float:
    """The share of a question's needs that some of these sentences accounts for, 0 to 1."""
    return sum(holds(sentences, need) for need in needs) / len(needs) if needs else 0.0


def holds(sentences: Sequence[Sentence], need: Need) -> bool:
    """Whether some of these sentences accounts for a need."""
    return any(need.covered(sentence) for sentence in sentences)
