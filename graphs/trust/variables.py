"""Determines which variables and headers of a server decide what runs, and what of the environment they send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from callsheet.graphs.catalog.formats.server_config import ServerConfig, variables_in
from callsheet.graphs.text.credentials import MASK, is_generated, is_secret_name, masked

_HARMLESS = (
    *"LANG LANGUAGE LC_* TZ TERM COLORTERM NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS LINES CI PORT".split(),
    *"DEBUG VERBOSE LOG_LEVEL LOGLEVEL *_LOG_LEVEL *_TIMEOUT DO_NOT_TRACK ANONYMIZED_TELEMETRY".split(),
    *"PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE NODE_NO_WARNINGS".split(),
    *"TOKEN *_TOKEN KEY *_KEY APIKEY *_APIKEY SECRET *_SECRET PASSWORD *_PASSWORD".split(),
)
"""Patterns of variables that neither select a program nor change what it runs: languages, logs, secrets."""


def is_harmless(variable: str) -> bool:
    """Returns whether a variable of this name is known not to change what the program does, whatever its value."""
    return any(fnmatchcase(variable.upper(), pattern) for pattern in _HARMLESS)


@dataclass(frozen=True, slots=True)
class Given:
    """A variable or header in the configuration of a server.

    Attributes:
        name: Its name.
        value: The value as written, if it may decide what runs; None for other variables, whose values may be secrets.
        reads: The variables of the user's environment that the value contains.
    """

    name: str
    value: str | None
    reads: tuple[str, ...]

    @property
    def covered(self) -> tuple[str, str | None, tuple[str, ...]]:
        """Returns the part of the variable that consent and pins cover."""
        return self.name, self.value, self.reads

    def __str__(self) -> str:
        """For people: likely secrets are masked."""
        if self.value is not None:
            return f"{self.name}={_shown(self.name, self.value)}"
        if not self.reads:
            return self.name
        sources = ", ".join(f"${{{name}}}" for name in self.reads)
        return f"{self.name} from {sources}"


def given_by(server: ServerConfig) -> tuple[Given, ...]:
    """Returns the variables of a server's process, or the headers of requests to it, by name."""
    if not server.command or server.openapi:
        return tuple(Given(name, None, variables_in(text)) for name, text in sorted(server.headers.items()))
    variables = []
    for name, text in sorted(server.env.items()):
        value = None if is_harmless(name) else text
        reads = () if name in server.literal else variables_in(text)
        variables.append(Given(name, value, reads))
    return tuple(variables)


def covered_names(server: ServerConfig) -> Mapping[str, object]:
    """Returns what a server's identity covers of its variables and headers beside their names; empty if nothing."""
    parts = [given.covered for given in given_by(server) if given.value is not None or given.reads]
    return {"given": parts} if parts else {}


def _shown(name: str, value: str) -> str:
    """Returns a value for people, with likely secrets masked; a path is no generated key."""
    if is_secret_name(name) or ("/" not in value and is_generated(value)):
        return MASK
    return masked([value])[0]
