"""English words for the rules: parts of speech from a lexicon, and small closed classes."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=4096)
def kinds_of(word: str) -> frozenset[str]:
    """The parts of speech of a word in its base form, such as ``VERB`` and ``NOUN``; lower case."""
    from lemminflect import getAllLemmas

    return frozenset(kind for kind, lemmas in getAllLemmas(word).items() if word in lemmas)


def is_verb(word: str) -> bool:
    """Whether a word can be the base form of a verb; "re-index" and "uninstall" count like "index" and "install"."""
    lower = word.lower()
    bases = (lower, *(lower.removeprefix(prefix).lstrip("-") for prefix in ("re", "un", "de") if lower != prefix))
    return lower not in NOT_VERBS and any("VERB" in kinds_of(base) for base in bases)


def is_noun(word: str) -> bool:
    """Whether a word can be a singular noun."""
    return "NOUN" in kinds_of(word.lower())


def is_plural(word: str) -> bool:
    """Whether a word can be the plural of a noun."""
    from lemminflect import getAllLemmas

    return any(lemma != word for lemma in getAllLemmas(word.lower()).get("NOUN", ()))


def may_be_noun(word: str) -> bool:
    """Whether a word can be a noun, or is in no lexicon: "playlist"."""
    from lemminflect import getAllLemmas

    return is_noun(word) or is_plural(word) or not getAllLemmas(word.lower())


def singular(noun: str) -> str:
    """The singular of a noun that may be a plural."""
    from lemminflect import getAllLemmas

    return next((lemma for lemma in getAllLemmas(noun.lower()).get("NOUN", ()) if lemma != noun), noun)


CONSUMING = frozenset(
    """
    add append archive attach back commit copy deliver dispatch dump email enter export file forward insert keep log
    mail message note output post present print publish put push record report save send share ship store submit
    summarise summarize text upload write
    """.split()
)
"""Verbs whose object may be the result of an earlier step."""

AGGREGATES = frozenset("average difference mean median product quotient sum total".split())
"""Nouns for a value that is computed from several."""

OPERATIONS = {
    "sum": "add plus +", "total": "add plus +", "difference": "subtract minus -", "product": "multiply times *×",
    "quotient": "divide divided /÷",
}  # fmt: skip
"""Nouns for what an operation of arithmetic gives: its verb, its other word and its signs."""

COMPUTED_NOUNS = AGGREGATES | frozenset("count minutes number summary transcript translation".split())
"""Nouns for the result of a certain step, which computes it."""

RESULT_NOUNS = COMPUTED_NOUNS | frozenset(
    """
    answer answers calculation conversion content contents data figure figures file finding findings list lines
    numbers outcome outcomes output outputs reply report response responses result results rows text value values
    """.split()
)
"""Nouns for the result of a step."""

FUNCTION_WORDS = frozenset(
    """
    a about above after against all also an and any are as at be because been before below between both but by can
    could did do does during each either else every few for from had has have he her here hers him his how i if in
    into is it its just like many may me might mine more most much must my near neither no nor not of off on one only
    onto or other our out over own per please same shall she should since so some such than that the their them then
    there these they this those through to too under until up upon us via was we were what when where whether which
    while who whom whose why will with within without would you your
    """.split()
)

NOT_VERBS = FUNCTION_WORDS | frozenset(
    """
    today tomorrow yesterday morning evening first second third last next previous two three four five six seven
    eight nine ten new old good bad best worst january february march april may june july august september october
    november december monday tuesday wednesday thursday friday saturday sunday thanks thank hello hi hey
    """.split()
)

NEUTRAL = frozenset(
    """
    a all also an and as at by called for from get give here i in into it its just kindly let me my named now of our
    please so that the them then there these this those to too us using via we with you your
    """.split()
)
"""Words without content in an order."""

QUESTION_WORDS = frozenset(
    """
    am are be being can come could do does equal equals has have inside is know like on out over say see show
    tell up want what what's which would
    """.split()
)
"""Further words without content, in a question and for a tool that reads or computes; not the past or the future."""


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
GLOB = re.compile(r"(?<!\S)[\w./-]*\*[\w./*-]*\.[A-Za-z]\w{0,9}(?![\w.*])")
"""File names with an asterisk: "*.csv"."""
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
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|Dr|Mr|Mrs|Ms|No|no(?=\.\s*\d)|St)\.")

MOST = 8_000
"""Characters that the rules read: some patterns take quadratic time."""
_PROTECTED = (QUOTED, URL, EMAIL, GLOB, PATH, CLOCK, _DECIMAL, _ABBREVIATION, _BRACKETS, SQL)


def mask(text: str) -> str:
    """The text at its own length, with protected spans blanked to ``¤`` so that no rule splits them."""
    for pattern in _PROTECTED:
        text = pattern.sub(lambda match: "¤" * len(match.group()), text)
    return text
