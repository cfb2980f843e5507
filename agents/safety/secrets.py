"""Keeps secrets of servers, and secret arguments, out of the state, messages, files and other servers."""

from __future__ import annotations

import base64
import json
import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, quote_plus
from weakref import WeakSet

from callsheet.agents.calls.outcome import Outcome
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.errors import CallsheetError, CatalogError
from callsheet.graphs.text.credentials import MASK, is_secret_name, secrets_in
from callsheet.graphs.text.hidden import without_hidden

_SHORTEST = 6
_MOST_RUNS = 1_000
_FOR_ADDRESSES = str.maketrans("+/", "-_")
# A short word, a number, a date, a folder, an e-mail address, an address without a password.
_PLAIN = re.compile(
    r"[\w.-]{0,15}|[-+\d.,:TZ ]+|(?:[~.]{0,2}|[A-Za-z]:)[/\\].*|[^@\s]+@[\w.-]+|[a-z]+://[^@\s?]*", re.ASCII | re.DOTALL
)
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)")
_PLACEHOLDER = re.compile(r"secret:[0-9a-f]{16}")


class LostSecretError(CallsheetError):
    """Raised if a secret argument is lost, because it was only in the memory of a program that has ended."""


def is_secret(name: str, schema: Mapping[str, object]) -> bool:
    """Returns whether an argument is secret: by its name, or by ``writeOnly`` or format ``password`` in its schema."""
    return is_secret_name(name) or schema.get("format") == "password" or schema.get("writeOnly") is True


class Redaction:
    """Removes values of six characters or more from texts, in any form: plain, in JSON, in a URL, in base64."""

    def __init__(self, values: Iterable[str]) -> None:
        self._forms: list[str] = []
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Adds values that are removed from now on."""
        forms = {form for value in values if len(value) >= _SHORTEST for form in _forms(value)}
        self._forms = sorted({*self._forms, *forms}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Returns the text without the values.

        Hidden characters, as they are or as ``\\u200b`` in JSON, hide no value: if one is found only without them, the
        text comes back without them.
        """
        if not self._forms:
            return text
        masked = self._masked(text)
        plain = without_hidden(masked)
        if plain == masked:
            return masked
        found = self._masked(plain)
        return masked if found == plain else found

    def _masked(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, MASK)
        return text

    def value(self, value: object) -> Any:
        """Redacts every string in a JSON value as ``text`` does, including keys, which stay distinct."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        hidden: dict[str, Any] = {}
        for key, item in value.items():
            name = self.text(key)
            while name != key and (name in hidden or name in value):
                name += "*"
            hidden[name] = self.value(item)
        return hidden


def of_server(full: ServerConfig, named: Iterable[tuple[str, str]], *, everything: bool = False) -> Redaction:
    """Returns the redaction for the answers of a server; ``full`` has its variables expanded, ``named`` lists them.

    It removes the values of headers, and those of the environment that look secret by name or value; a folder, a number
    or an ordinary word is not removed. With ``everything``, for error messages, all values are removed.
    """
    given = [*full.env.items(), *named]
    values = {value for name, value in given if everything or is_secret_name(name) or _looks_secret(value)}
    headers = {part for value in full.headers.values() for part in _of_header(value)}
    return Redaction({*values, *headers, *secrets_in((*full.args, full.url or "", *(value for _, value in given)))})


def named_in(raw: ServerConfig, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns the environment variables that a server's entry refers to, with their values."""
    return [(name, environ[name]) for name in _VARIABLE.findall(raw.model_dump_json()) if name in environ]


def _of_header(value: str) -> set[str]:
    """Returns the value, the part after its scheme (``Bearer``), and user and password inside in base64."""
    scheme, _, rest = value.partition(" ")
    found = {value, rest}
    if scheme.lower() == "basic":
        with suppress(ValueError):
            pair = base64.b64decode(rest).decode()
            found |= {pair, pair.partition(":")[2]}
    return found


class RunSecrets(Redaction):
    """The secret arguments of one run; they stay in memory, and the state has placeholders."""

    hidden = Redaction.value

    def __init__(self) -> None:
        super().__init__(())
        self._lock = threading.Lock()
        self._placeholders: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def masked(self, schema: Mapping[str, object], args: Mapping[str, object]) -> dict[str, Any]:
        """Replaces each secret argument by a placeholder; the schema shows which arguments are secret."""
        return {name: _changed(name, value, _property(schema, name), self._hide) for name, value in args.items()}

    def opened(self, schema: Mapping[str, object], args: Mapping[str, object]) -> dict[str, Any]:
        """Replaces placeholders by their secrets, but only where the schema has a secret argument.

        Raises a ``LostSecretError`` if a placeholder belongs to another run, or to a program that has ended.
        """
        return {name: _changed(name, value, _property(schema, name), self._show) for name, value in args.items()}

    def outcome(self, outcome: Outcome) -> Outcome:
        """Removes the known secrets from the outcome of a call."""
        texts = ("text", "structured", "error", "questions")
        hidden: dict[str, Any] = {name: self.hidden(getattr(outcome, name)) for name in texts}
        return outcome.model_copy(update=hidden)

    def _hide(self, value: object) -> Any:
        if value in (None, "") or isinstance(value, bool) or (isinstance(value, str) and _PLACEHOLDER.fullmatch(value)):
            return value
        key = json.dumps(value, sort_keys=True, default=str)
        with self._lock:
            if key not in self._placeholders:
                hide_in_logs(self)
                placeholder = f"secret:{secrets.token_hex(8)}"
                self._placeholders[key], self._values[placeholder] = placeholder, value
                self.add([str(value)])
            return self._placeholders[key]

    def _show(self, value: object) -> Any:
        if not isinstance(value, str) or not _PLACEHOLDER.fullmatch(value):
            return value
        if value not in self._values:
            raise LostSecretError("a secret argument is not stored when the program ends: give it again")
        return self._values[value]


def without_secrets(schema: Mapping[str, object], args: Mapping[str, object]) -> dict[str, Any]:
    """Returns the arguments with the same mask for every secret, whether it is a value or a placeholder."""
    return {name: _changed(name, value, _property(schema, name), lambda _: MASK) for name, value in args.items()}


class Secrets:
    """The secret arguments of all runs of a program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, RunSecrets] = {}

    def of(self, run_id: str) -> RunSecrets:
        """Returns the secrets of one run; only those of the last thousand runs are kept."""
        with self._lock:
            found = self._runs[run_id] = self._runs.pop(run_id, RunSecrets())
            if len(self._runs) > _MOST_RUNS:
                del self._runs[next(iter(self._runs))]
            return found

    def forget(self, run_id: str) -> None:
        """Deletes the secrets of a run."""
        with self._lock:
            self._runs.pop(run_id, None)


def _changed(
    name: str, value: object, schema: Mapping[str, object], change: Callable[[Any], Any], *, within: bool = False
) -> Any:
    """Applies ``change`` to the secrets in a value; within a secret, every value is one."""
    secret = within or is_secret(name, schema)
    match value:
        case dict():
            return {k: _changed(k, item, _property(schema, k), change, within=secret) for k, item in value.items()}
        case list():
            items = schema.get("items")
            below = items if isinstance(items, dict) else {}
            return [_changed(name, item, below, change, within=secret) for item in value]
        case _:
            return change(value) if secret else value


def _property(schema: Mapping[str, object], name: str) -> Mapping[str, Any]:
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, dict) else None
    return found if isinstance(found, dict) else {}


def has_secrets(schema: object) -> bool:
    """Returns whether a tool with this schema takes secret arguments."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    found = properties.items() if isinstance(properties, dict) else ()
    return any(isinstance(spec, dict) and (is_secret(name, spec) or has_secrets(spec)) for name, spec in found)


def _forms(value: str) -> set[str]:
    in_json = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    raw = value.encode(errors="replace")
    return {value, *in_json, quote(value, safe=""), quote_plus(value), raw.hex(), *_in_base64(raw)}


def _in_base64(raw: bytes) -> set[str]:
    """Returns the value in base64: alone, and inside something longer at any offset."""
    found: set[str] = set()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode()
        # The first and last characters also hold bits of their neighbours.
        sure = encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        found |= {encoded, encoded.rstrip("=")} if not before else set()
        found |= {sure} if len(sure) >= _SHORTEST else set()
    return found | {form.translate(_FOR_ADDRESSES) for form in found}


def _looks_secret(value: str) -> bool:
    """Returns whether a value is not ordinary, or looks like a generated key: long, with letters and digits."""
    if not _PLAIN.fullmatch(value):
        return True
    letters = sum(character.isalpha() for character in value)
    digits = sum(character.isdigit() for character in value)
    return len(value) >= 12 and letters >= 3 and digits >= 2 and "/" not in value and "." not in value


class _Hiding(logging.Filter):
    """Rewrites log records; none is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.known: WeakSet[Redaction] = WeakSet()

    def filter(self, record: logging.LogRecord) -> bool:
        message = said = record.getMessage()
        for hides in list(self.known):
            said = hides.text(said)
        if said != message:
            record.msg = said
            record.args = ()
        return True


_HIDING = _Hiding()
# A logger's filter does not see the records of child loggers, so each logger is listed.
_LOGGERS = (
    *("client", "mcp.client.client", "mcp.client.sse", "mcp.client.streamable_http"),
    *("mcp.shared.dispatcher", "mcp.shared.jsonrpc_dispatcher"),
    *(f"{core}.{part}" for core in ("httpcore", "httpcore2") for part in ("connection", "http11", "http2", "proxy")),
    *("httpx", "httpx2"),
)


def hide_in_logs(hides: Redaction) -> None:
    """Removes secrets from the logs of the HTTP and MCP libraries as long as ``hides`` is referenced."""
    _HIDING.known.add(hides)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_HIDING)


def origin(address: str) -> tuple[str, str, int | None]:
    """Returns scheme, host and port of an address as the HTTP client reads it; raises a CatalogError if invalid."""
    import httpx2

    try:
        url = httpx2.URL(address)
    except (httpx2.InvalidURL, ValueError) as error:
        raise CatalogError(f"{address!r} is not an address: {error}") from error
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)
