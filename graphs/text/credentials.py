"""Finds and masks secrets in arguments, addresses and command lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from urllib.parse import unquote

from callsheet.graphs.text.hidden import without_hidden
from callsheet.graphs.text.words import split_name

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
    """Returns likely secrets in the words of a command or in addresses.

    These are: passwords in addresses, alone and together with their user name, as written and URL-decoded; tokens in
    the path of a web address; values after names of secrets (``--api-key X``, ``key=X``, ``Authorization: Bearer X``).
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

    Hidden characters are removed from a word in which they hide a secret.
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
    """Returns whether a text looks like a generated key, in which upper case, lower case and digits alternate often."""
    text = _SEPARATOR.sub("", text)
    is_mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return is_mixed and len(text) >= _SHORTEST_KEY and len(_RUN.findall(text)) >= _FEWEST_RUNS
