"""TOML, edited in place: tables are taken out and put in by their lines.

tomlkit loses comments behind a removed table, and fails where a table of another subject stands between two servers
(0.15), as Codex writes it. It writes new entries here; ``tomllib`` finds where a statement ends.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.orchestrator.server.gateway.clients.config_document import (
    check_exchanged,
    newline_of,
    not_editable,
    servers_of,
)

_LINES = re.compile(r"[^\n]*\n|[^\n]+\Z")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A table header or an assignment: its lines, and the keys that it names from the root on."""

    start: int
    end: int
    path: tuple[str, ...]
    header: bool


class TomlDocument:
    """A configuration in TOML.

    Raises:
        SettingsError: It is not valid.
    """

    def __init__(self, text: str, key: str, file: Path) -> None:
        self.text, self.key, self._file = text, key, file
        try:
            self.value: dict[str, Any] = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise SettingsError(f"{file}: not valid TOML: {error}. Nothing was written") from error
        self.servers = servers_of(self.value, key, file)
        self._lines = _LINES.findall(text)
        self._statements = list(self._read())

    def source_of(self, name: str) -> str:
        """As in ``ConfigDocument``."""
        runs = list(self._runs({name}))
        if all(self._statements[first].header for first, _ in runs):
            return "\n".join("".join(self._lines[slice(*self._span(run))]) for run in runs)
        return self.source(name, self.servers[name])  # assignments, which need the header above them

    def source(self, name: str, entry: Mapping[str, Any]) -> str:
        """As in ``ConfigDocument``."""
        import tomlkit

        table = tomlkit.table(is_super_table=True)
        table.add(name, tomlkit.item(dict(entry)))
        text = tomlkit.dumps(tomlkit.document().add(self.key, table))
        return text.replace("\n", newline_of(self.text))

    def exchanged(self, remove: Collection[str], add: Mapping[str, str]) -> str:
        """As in ``ConfigDocument``."""
        lines = list(self._lines)
        for first, end in reversed([self._span(run) for run in self._runs(remove)]):
            del lines[first:end]
            while first < len(lines) and not lines[first].strip() and (first == 0 or not lines[first - 1].strip()):
                del lines[first]
        text, newline = "".join(lines), newline_of(self.text)
        for source in add.values():
            if text.strip():
                text = text.rstrip("\r\n") + newline * 2
            text += source.rstrip("\r\n") + newline
        try:
            after = TomlDocument(text, self.key, self._file)
        except SettingsError as error:
            raise not_editable(self._file) from error
        check_exchanged(self, after, remove, add, self._file)
        return text

    def without_servers(self) -> str:
        """As in ``ConfigDocument``; an empty table that has a line of its own stays."""
        return self.text

    def _read(self) -> Iterator[_Statement]:
        at, table = 0, tuple[str, ...]()
        while at < len(self._lines):
            line = self._lines[at].strip()
            if not line or line.startswith("#"):
                at += 1
            elif line.startswith("["):
                table = _keys(tomllib.loads(line))
                yield _Statement(at, at := at + 1, table, header=True)
            else:
                end, keys = self._assignment(at)
                yield _Statement(at, at := end, (*table, *keys), header=False)

    def _assignment(self, start: int) -> tuple[int, tuple[str, ...]]:
        """The line after an assignment, and its keys: it ends where it can be parsed."""
        for end in range(start + 1, len(self._lines) + 1):
            try:
                return end, _keys(tomllib.loads("".join(self._lines[start:end])))
            except tomllib.TOMLDecodeError:
                continue
        raise SettingsError(f"{self._file}: line {start + 1} cannot be read. Nothing was written")

    def _runs(self, names: Collection[str]) -> Iterator[tuple[int, int]]:
        """First and last index of the statements of one server that stand one after another."""

        def owner(item: tuple[int, _Statement]) -> str | None:
            path = item[1].path
            return path[1] if len(path) > 1 and path[0] == self.key and path[1] in names else None

        for name, group in groupby(enumerate(self._statements), key=owner):
            indexes = [index for index, _ in group]
            if name is not None:
                yield indexes[0], indexes[-1]

    def _span(self, run: tuple[int, int]) -> tuple[int, int]:
        return self._statements[run[0]].start, self._statements[run[1]].end


def _keys(value: object) -> tuple[str, ...]:
    """The keys that lead to the first value, or to several."""
    keys = []
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)
