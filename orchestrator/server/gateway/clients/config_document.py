"""A client's configuration as text that is edited in place: what is not asked for stays as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from callsheet.graphs.catalog.errors import SettingsError

LARGEST = 32 * 1024 * 1024
"""Bytes of the largest configuration that is read."""


class ConfigDocument(Protocol):
    """A parsed configuration whose servers can be exchanged."""

    @property
    def key(self) -> str:
        """Name of the object that holds the servers."""
        ...

    @property
    def value(self) -> Mapping[str, Any]:
        """The parsed content."""
        ...

    @property
    def servers(self) -> Mapping[str, Any]:
        """The servers by name, in the order of the file."""
        ...

    def source_of(self, name: str) -> str:
        """The text of one server in the file, which ``exchanged`` takes."""
        ...

    def source(self, name: str, entry: Mapping[str, Any]) -> str:
        """The text of a new server."""
        ...

    def exchanged(self, remove: Collection[str], add: Mapping[str, str]) -> str:
        """The text of the file without some servers, and with others.

        Args:
            remove: Names of servers to leave out.
            add: Name -> text of the server, from ``source`` or ``source_of``.

        Raises:
            SettingsError: The file cannot be edited so that only this changes.
        """
        ...

    def without_servers(self) -> str:
        """The text without the object of the servers, which is empty."""
        ...


def text_of(content: bytes, file: Path) -> str:
    """The text of a configuration, without a byte order mark.

    Raises:
        SettingsError: It is too large, or not UTF-8.
    """
    if len(content) > LARGEST:
        raise SettingsError(f"{file}: {len(content):,} bytes; at most {LARGEST:,} are read. Nothing was written")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{file}: not UTF-8 text: {error.reason} at byte {error.start}. Nothing was written"
        ) from error


def newline_of(text: str) -> str:
    """The line end that the first line of a text has."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def servers_of(value: Mapping[str, Any], key: str, file: Path) -> dict[str, Any]:
    """The servers under the client's key; empty if there are none.

    Raises:
        SettingsError: They are not an object of objects.
    """
    servers = value.get(key, {})
    if not isinstance(servers, dict):
        raise SettingsError(f"{file}: {key!r} must hold servers by name. Nothing was written")
    return servers


def check_exchanged(
    document: ConfigDocument, after: ConfigDocument, remove: Collection[str], add: Collection[str], file: Path
) -> None:
    """Checks that an edit has changed just the servers that it was to change.

    Raises:
        SettingsError: It has changed something else.
    """
    kept = {name: entry for name, entry in document.servers.items() if name not in remove}
    rest = [{k: v for k, v in one.value.items() if k != document.key} for one in (document, after)]
    others = {name: entry for name, entry in after.servers.items() if name not in add}
    if rest[0] != rest[1] or others != kept or not set(add) <= after.servers.keys():
        raise not_editable(file)


def not_editable(file: Path) -> SettingsError:
    """The error for a valid configuration whose form defeats editing in place."""
    return SettingsError(
        f"{file}: its form cannot be edited safely: write each server as an entry of its own. Nothing was written"
    )
