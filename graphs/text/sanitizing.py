"""Sanitizes text from outside for models, embedders and people, and masks secrets; the original stays unchanged."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from callsheet.graphs.errors import CatalogError, RequestError, SettingsError
from callsheet.graphs.text.regex import linear

if TYPE_CHECKING:
    from pydantic import ValidationError

LONGEST_TEXT = 4_096
DEEPEST = 100
_MARKS = linear(r"(\pM{30})\pM+")
_LONG_BLANK = re.compile(r"\s{33,}")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_BREAKS = re.compile(r"[\n\t\u2028\u2029]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def counted(number: int, word: str, plural: str = "") -> str:
    """Returns a number with its noun: ``1 agent``, ``2,000 agents``; with a ``plural``, ``3 queries``."""
    noun = word if number == 1 else plural or f"{word}s"
    return f"{number:,} {noun}"


class Hidden(StrEnum):
    """Kinds of characters that are invisible to people, but not to a model, an embedder or a terminal."""

    TAG = "tag"
    """Unicode tags (U+E0000 to U+E007F): an invisible alphabet."""
    BIDI = "bidirectional"
    """Overrides, embeddings and isolates, which change the display order of text."""
    CONTROL = "control"
    """Control characters and terminal escape sequences (ANSI)."""
    INVISIBLE = "invisible"
    """Other invisible characters: zero-width spaces, fillers, direction marks, variation selectors."""


# Unicode's DerivedCoreProperties, Default_Ignorable_Code_Point (with direction marks), without tags and variation
# selectors, with the interlinear annotation.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_SELECTOR = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_EMOJI = "\u00a9\u00ae\u2049\u203c\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_SELECTED = f"#*0-9{_EMOJI}\u1000-\u109f\u2200-\u22ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_JOINING = (
    "\u0600-\u061b\u061d-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af\u1a20-\u1cff"
    "\ufb50-\ufdff\ufe70-\ufefc"
)
_FLAGS = "|".join("".join(chr(0xE0000 + ord(c)) for c in f"{name}\x7f") for name in ("gbeng", "gbsct", "gbwls"))
# Legitimate uses: flags of England, Scotland and Wales; joiners after a letter of an Arabic or Indic script or in an
# emoji; one selector after a character that has variants; the selectors of Mongolian.
_LEGITIMATE = (
    f"(?<=\U0001f3f4)(?:{_FLAGS})|(?<=[{_JOINING}])[\u200c\u200d](?![{_IGNORABLE}])"
    f"|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])|(?<=[{_SELECTED}])[{_SELECTOR}]|(?<=[\u1820-\u18af])[\u180b-\u180f]"
)
_BLANK = "\u2800\U0001d159"
"""Symbols without ink, of which Unicode has no property."""
_ESCAPE = r"\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"
_SUSPECT = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_IGNORABLE}{_SELECTOR}\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
_HIDDEN = re.compile(
    f"(?P<legitimate>{_LEGITIMATE})|(?P<newline>\r\n?)|(?P<{Hidden.TAG}>[\U000e0000-\U000e007f]+)"
    f"|(?P<{Hidden.BIDI}>[\u202a-\u202e\u2066-\u2069])"
    f"|(?P<{Hidden.CONTROL}>{_ESCAPE}|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f])"
    f"|(?P<{Hidden.INVISIBLE}>[{_IGNORABLE}{_SELECTOR}])"
)


def shown(text: str, *, most: int | None = LONGEST_TEXT) -> str:
    """Returns the text without hidden characters, cut to the length that a model is shown, or to ``most``.

    Legitimate joiners and selectors (Persian, Indic scripts, emoji) stay. The text is not normalized: clean text of
    this length is returned unchanged. With ``most=None``, nothing is cut.

    Examples:
        >>> shown("Adds\\u200b two\\x1b[8m numbers")
        'Adds two numbers'
    """
    if _SUSPECT.search(text):
        text = _HIDDEN.sub(_visible, text)
    if most is not None and len(text) > most:
        text = f"{text[: most - 1]}…"
    return text


def hidden_in(text: str) -> dict[Hidden, int]:
    """Returns how many characters of each kind ``shown`` removes from a text."""
    if not _SUSPECT.search(text):
        return {}
    counts: Counter[Hidden] = Counter()
    for match in _HIDDEN.finditer(text):
        if match.lastgroup in set(Hidden):
            counts[Hidden(match.lastgroup)] += len(match.group())
    return dict(counts)


def escaped(text: str) -> str:
    r"""Returns the text with hidden characters written as ``\x1b`` or ``\u202e``, for people."""
    return _HIDDEN.sub(lambda match: _visible(match) or match.group().encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Returns ``escaped`` with escaped line breaks too, so that the text cannot imitate a line of our output."""
    return _BREAKS.sub(lambda match: match.group().encode("unicode_escape").decode(), escaped(text))


def error_lines(error: ValidationError) -> str:
    """Returns the errors of a validation in one line, each with its place."""
    lines = list[str]()
    for detail in error.errors():
        place = ".".join(map(str, detail["loc"])) or "arguments"
        lines.append(f"{place}: {detail['msg']}")
    return "; ".join(lines)


def written_out(document: str, *, longest: int = 4) -> str:
    """Returns a document with its hidden characters as ``\\u202e``, as JSON, Cypher and Turtle write them.

    They must all be inside quotation marks.

    ``longest``: digits for characters above U+FFFF, 8 for ``\\U0001f600``, 4 for two surrogates.
    """
    return _HIDDEN.sub(lambda match: "".join(_codes(match, longest)), document)


def spelled_out(document: str) -> str:
    """Returns a JSON document with codes (``\\u202e``) for all characters that cannot be seen or look like a blank.

    Unlike ``written_out``, joiners and selectors are no exception: no two documents look the same because of what
    cannot be seen. It can be parsed to the same value.
    """
    if document.isascii() and document.isprintable():
        return document
    return document.translate({ord(one): _code_units(one) for one in set(document) if _is_unseen(one)})


def _is_unseen(character: str) -> bool:
    """Returns whether nothing is drawn for a character, or only a blank.

    The blank and the line break of JSON excepted.
    """
    if character in " \n":
        return False
    # Controls, formats, surrogates, private and unassigned characters, and all separators.
    return unicodedata.category(character)[0] in "CZ" or bool(_SUSPECT.match(character)) or character in _BLANK


def _code_units(text: str) -> str:
    """Returns the text as escapes of JSON."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _codes(match: re.Match[str], longest: int) -> Iterator[str]:
    for character in match.group():
        # A terminal sequence may extend beyond the quotation mark.
        if match.lastgroup == "legitimate" or not _SUSPECT.match(character):
            yield character
        elif ord(character) > 0xFFFF and longest == 8:
            yield f"\\U{ord(character):08x}"
        else:
            yield _code_units(character)


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Returns a Unicode normal form in linear time: at most 30 combining marks stay on one character.

    Lone surrogates become question marks. Sorting combining marks takes quadratic time, and no script has that many
    (Unicode, UAX #15, Stream-Safe Text Format).
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _MARKS.sub(r"\1", encodable(text)))


def encodable(text: str) -> str:
    """Returns the text with question marks for lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def storable(text: str) -> str:
    """Returns ``encodable`` with question marks for NUL too, which PostgreSQL cannot store."""
    return encodable(text).replace("\0", "?")


def visible(text: str) -> str:
    """Returns ``encodable`` and ``shown`` for a text of any length."""
    return shown(encodable(text), most=None)


def without_hidden(text: str) -> str:
    r"""Returns ``visible``, also without hidden characters that are written as ``\u200b``, as in JSON."""
    if "\\u" in text:
        text = _ESCAPES.sub(_unescaped, text)
    return visible(text)


def _unescaped(match: re.Match[str]) -> str:
    """Returns escaped characters with the hidden ones unescaped; other escapes stay."""
    characters: str = json.loads(f'"{match.group()}"')
    return "".join(one if _SUSPECT.match(one) else json.dumps(one)[1:-1] for one in characters)


def clean(value: Any, *, deepest: int = DEEPEST, text: Callable[[str], str] = encodable) -> Any:
    """Returns a JSON value with all its strings encodable, or with another change of its ``text``.

    Raises:
        CatalogError: The value is nested more than ``deepest`` levels deep.
    """
    if deepest < 0:
        raise CatalogError(f"nested more than {DEEPEST} levels deep")
    match value:
        case str():
            return text(value)
        case dict():
            return {clean(key, text=text): clean(item, deepest=deepest - 1, text=text) for key, item in value.items()}
        case list():
            return [clean(item, deepest=deepest - 1, text=text) for item in value]
        case _:
            return value


def strings_in(value: Any) -> Iterator[str]:
    """Yields all strings of a JSON value, with keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            if isinstance(item, str):  # most are: a generator for each would take longer
                yield item
            else:
                yield from strings_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item)


def split_name(name: str) -> str:
    """Returns ``convert length to`` for ``convertLength_to``."""
    return " ".join(re.split(r"[\W_]+", _CAMEL.sub(" ", name))).strip().lower()


def _visible(match: re.Match[str]) -> str:
    """Returns what is shown in place of a match of ``_HIDDEN``."""
    match match.lastgroup:
        case "legitimate":
            return match.group()
        case "newline":
            return "\n"
        case _:
            return ""


def check_type(value: object, kind: type, name: str) -> None:
    """Raises ``SettingsError`` for an argument that is neither None nor of its type."""
    if not isinstance(value, kind | None):
        raise SettingsError(f"{name} must be {kind.__name__}(...), not {type(value).__name__}")


def listed(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Returns the texts; a single text counts as one, not as its characters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def bounded(text: str, most: int, setting: str) -> str:
    """Returns a request or a query in which more than 32 blanks in a row become one, or an empty line.

    Raises:
        RequestError: It is longer than the ``setting`` allows.
    """
    text = _LONG_BLANK.sub(lambda run: "\n\n" if "\n" in run.group() else " ", storable(text))
    if len(text) > most:
        raise RequestError(
            f"this has {len(text):,} characters, the maximum is {most:,}: shorten it, move long parts "
            f"to a file, or raise the setting {setting!r}"
        )
    return text


MASK = "***"
_ALWAYS = re.compile(r"\b(pass(word|wd|phrase|code)|pwd|secrets?|credentials?|bearer|authorization|api ?key)\b")
_KEY = re.compile(r"\b(access|account|api|auth|client|encryption|license|master|private|secret|service|signing) key$")
_TOKEN = re.compile(r"\btoken$")
# Tokens of pagination and of text generation; they are not secrets.
_NO_SECRET = re.compile(
    r"\b(page|next|prev|previous|continuation|start|sync|delta|progress|cursor|resume|stop|eos|bos)\b"
)
# "user:password" before an "@"; a password may contain any character, also "@" and "/". A port is not a password.
_USER = r"(?P<user>[^\s:@/?#=]{1,256})(?::(?P<password>(?!\d*(?:[/?#]|$))\S{0,256}))?@(?=[\w.(\[:/%-])"
_ADDRESS = re.compile(rf"(?<![\w+.-])(?P<scheme>[A-Za-z][\w+.-]*)://(?:{_USER})?(?P<rest>[^\s\"'<>]*)")
_BARE = re.compile(r"(?<![^\s=\"'])(?![\"']{2})" + _USER)
_NAME = re.compile(r"(?<![\w.-])([\w.-]+)[\"']?\s*[:=]\s*(?:(?:bearer|basic|token)\s+)?", re.IGNORECASE)
_VALUE = re.compile(r"\"[^\"]+|'[^']+|[^\s;&,\"'}#]+")
_WEB = ("http", "https", "ws", "wss", "sse")
_SEGMENT = re.compile(r"[^/]+")
_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_SEPARATOR = re.compile(r"[-_]")
_SHORTEST_KEY = 10
_FEWEST_RUNS = 5


def is_secret_name(name: str) -> bool:
    """Returns whether an argument, a header or a variable of this name holds a secret, as ``api_key`` does."""
    words = split_name(without_hidden(name))
    if _ALWAYS.search(words) or _KEY.search(words):
        return True
    return bool(_TOKEN.search(words)) and not _NO_SECRET.search(words)


def secrets_in(words: Iterable[str]) -> set[str]:
    """Returns likely secrets in the words of a command, or in addresses.

    These are: passwords in addresses, alone and with their user (which basic authentication sends together), as
    written and URL-decoded; tokens in the path of a web address; values after secret names (``--api-key X``,
    ``key=X``, ``Authorization: Bearer X``).
    """
    secrets: set[str] = set()
    as_written = list(words)
    plain = [without_hidden(word) for word in as_written]
    for before, word in chain(pairwise(("", *as_written)), pairwise(("", *plain))):
        secrets.update(word[start:end] for start, end in _spans(before, word))
        for user in _users_in(word):
            # "postgres:postgres" is not a secret, and an answer may mention Postgres.
            if user["password"] == user["user"]:
                secrets.discard(user["password"])
            if user["password"]:
                secrets.add(f"{user['user']}:{user['password']}")
    return secrets | {unquote(value) for value in secrets}


def masked(words: Iterable[str]) -> list[str]:
    """Returns the words with ``***`` in place of each secret.

    A word that hides a secret by hidden characters comes without them.
    """
    originals = list(words)
    as_written = [_masked(before, word) for before, word in pairwise(("", *originals))]
    if all(without_hidden(word) == word for word in as_written):
        return as_written
    plain = [without_hidden(word) for word in originals]
    without = [_masked(before, word) for before, word in pairwise(("", *plain))]
    result = list[str]()
    for first, second in zip(as_written, without, strict=True):
        has_more_secrets = second != without_hidden(first)
        result.append(second if has_more_secrets else first)
    return result


def _masked(before: str, word: str) -> str:
    """Returns a word with its secrets masked; the word ``before`` it may be an option that names a secret."""
    parts = list[str]()
    position = 0
    for start, end in sorted(_spans(before, word)):
        if end > position:
            parts += [word[position : max(start, position)], MASK]
            position = end
    return "".join((*parts, word[position:]))


def _spans(before: str, word: str) -> Iterator[tuple[int, int]]:
    """Yields start and end of each secret in a word."""
    if before.startswith("-") and "=" not in before and not word.startswith("-") and _is_secret_option(before):
        yield 0, len(word)
    yield from _values(word)
    for user in _users_in(word):
        if user["password"]:
            yield user.span("password")
        elif is_generated(user["user"]):
            yield user.span("user")
    for address in _ADDRESS.finditer(word):
        if address["scheme"].lower() in _WEB:
            yield from _tokens(address)


def _is_secret_option(name: str) -> bool:
    return is_secret_name(name) or split_name(name) in ("key", "auth")


def _values(word: str) -> Iterator[tuple[int, int]]:
    """Yields start and end of the values of pairs with a secret name.

    Other values may contain pairs themselves, as an address with its query.
    """
    at = 0
    while name := _NAME.search(word, at):
        at = name.end()
        in_query = word[name.start() - 1 : name.start()] in ("?", "&")
        is_option = in_query or name[1].startswith("-")
        is_secret = _is_secret_option(name[1]) if is_option else is_secret_name(name[1])
        value = _VALUE.match(word, at)
        # In a query, a generated key is a secret whatever its name is.
        if value and (is_secret or (in_query and is_generated(value[0]))):
            is_quoted = value[0][0] in "\"'"
            yield at + is_quoted, value.end()
            at = value.end()


def _users_in(word: str) -> Iterator[re.Match[str]]:
    """Yields the users with passwords before an ``@``, in addresses and by themselves."""
    for match in _ADDRESS.finditer(word):
        if match["user"]:
            yield match
    for match in _BARE.finditer(word):
        if match["password"]:
            yield match


def _tokens(address: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yields start and end of the segments of the path, after the host, that look like generated keys."""
    path = re.split("[?#]", address["rest"], maxsplit=1)[0]
    start = address.start("rest")
    for segment in list(_SEGMENT.finditer(path))[1:]:
        if is_generated(segment.group()):
            yield start + segment.start(), start + segment.end()


def is_generated(text: str) -> bool:
    """Returns whether a text looks like a generated key: upper case, lower case and digits alternate often."""
    text = _SEPARATOR.sub("", text)
    is_mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return is_mixed and len(text) >= _SHORTEST_KEY and len(_RUN.findall(text)) >= _FEWEST_RUNS
