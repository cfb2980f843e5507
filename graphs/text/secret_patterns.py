"""Finds and masks secrets in command lines and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from urllib.parse import unquote

from callsheet.graphs.text.sanitizing import split_name

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
_SEGMENT, _RUN, _SEPARATOR = re.compile(r"[^/]+"), re.compile(r"[a-z]+|[A-Z]+|[0-9]+"), re.compile(r"[-_]")
_SHORTEST_KEY, _FEWEST_RUNS = 10, 5


def is_secret_name(name: str) -> bool:
    """Whether an argument, a header or a variable of this name holds a secret: ``api_key``, ``authToken`` ..."""
    words = split_name(name)
    return bool(_ALWAYS.search(words) or _KEY.search(words) or (_TOKEN.search(words) and not _NO_SECRET.search(words)))


def secrets_in(words: Iterable[str]) -> set[str]:
    """Likely secrets in the words of a command, or in addresses.

    These are: passwords in addresses, alone and with their user (which basic authentication sends together), as
    written and URL-decoded; tokens in the path of a web address; values after secret names (``--api-key X``,
    ``key=X``, ``Authorization: Bearer X``).
    """
    secrets: set[str] = set()
    for before, word in pairwise(("", *words)):
        secrets.update(word[start:end] for start, end in _spans(before, word))
        for user in _users_in(word):
            # "postgres:postgres" is not a secret, and an answer may mention Postgres.
            secrets -= {user["password"]} & {user["user"]}
            secrets |= {f"{user['user']}:{user['password']}"} if user["password"] else set()
    return {form for value in secrets for form in (value, unquote(value))}


def masked(words: Iterable[str]) -> list[str]:
    """The words with ``***`` in place of each secret."""
    return [_masked(before, word) for before, word in pairwise(("", *words))]


def _masked(before: str, word: str) -> str:
    parts, position = [], 0
    for start, end in sorted(_spans(before, word)):
        if end > position:
            parts += [word[position : max(start, position)], MASK]
            position = end
    return "".join((*parts, word[position:]))


def _spans(before: str, word: str) -> Iterator[tuple[int, int]]:
    """Start and end of each secret in a word."""
    if before.startswith("-") and "=" not in before and not word.startswith("-") and _is_secret_option(before):
        yield 0, len(word)
    yield from _values(word)
    for user in _users_in(word):
        if user["password"]:
            yield user.span("password")
        elif _is_generated(user["user"]):
            yield user.span("user")
    for address in _ADDRESS.finditer(word):
        if address["scheme"].lower() in _WEB:
            yield from _tokens(address)


def _is_secret_option(name: str) -> bool:
    return is_secret_name(name) or split_name(name) in ("key", "auth")


def _values(word: str) -> Iterator[tuple[int, int]]:
    """The values of pairs with a secret name; other values may contain pairs: an address with its query."""
    at = 0
    while name := _NAME.search(word, at):
        at = name.end()
        in_query = word[name.start() - 1 : name.start()] in ("?", "&")
        secret = (_is_secret_option if in_query or name[1].startswith("-") else is_secret_name)(name[1])
        if (secret or in_query) and (value := _VALUE.match(word, at)) and (secret or _is_generated(value[0])):
            yield at + (value[0][0] in "\"'"), value.end()
            at = value.end()


def _users_in(word: str) -> Iterator[re.Match[str]]:
    yield from (match for match in _ADDRESS.finditer(word) if match["user"])
    yield from (match for match in _BARE.finditer(word) if match["password"])


def _tokens(address: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The segments of the path, after the host, that look like generated keys."""
    path = re.split("[?#]", address["rest"], maxsplit=1)[0]
    start = address.start("rest")
    for segment in list(_SEGMENT.finditer(path))[1:]:
        if _is_generated(segment.group()):
            yield start + segment.start(), start + segment.end()


def _is_generated(text: str) -> bool:
    """Whether a text looks like a generated key: upper case, lower case and digits alternate often."""
    text = _SEPARATOR.sub("", text)
    mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return mixed and len(text) >= _SHORTEST_KEY and len(_RUN.findall(text)) >= _FEWEST_RUNS
