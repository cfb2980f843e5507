"""Callsheet in a client's configuration: the change that installs it, and the one that undoes that."""

from __future__ import annotations

import codecs
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import SettingsError, UnknownNameError, near_names
from callsheet.orchestrator.server.gateway.clients.change import ConfigChange, FileChange, read_file, real_file
from callsheet.orchestrator.server.gateway.clients.config_document import ConfigDocument, newline_of, text_of
from callsheet.orchestrator.server.gateway.clients.jsonc_document import JsoncDocument
from callsheet.orchestrator.server.gateway.clients.mcp_clients import McpClient, read_document
from callsheet.orchestrator.server.gateway.clients.receipt import Receipt, ReceiptFolder, digest
from callsheet.orchestrator.server.gateway.clients.server_entries import (
    OWN,
    secrets_in,
    sort_servers,
    variables_in,
)


@dataclass(frozen=True, slots=True)
class _Undone:
    """A configuration without Callsheet.

    Attributes:
        content: Its content; None: there was no file.
    """

    content: bytes | None
    restored: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Installation:
    """Callsheet in one configuration of a client.

    Raises:
        SettingsError: The file leads nowhere, or the receipt of an earlier installation cannot be read.
    """

    def __init__(self, client: McpClient, file: Path) -> None:
        self.client, self.file = client, real_file(file)
        self.place = ReceiptFolder(client, self.file)
        self.receipt = self.place.read()

    @property
    def default_catalog(self) -> Path:
        """The catalog of the earlier installation, or else one in Callsheet's folder."""
        return Path(self.receipt.catalog) if self.receipt else self.place.folder / "mcp.json"

    def install(self, entry: Mapping[str, Any], catalog: Path, keep: Collection[str] = ()) -> ConfigChange:
        """The change that moves the servers into a catalog and puts the entry of Callsheet in their place.

        Args:
            entry: How the client starts Callsheet: ``command``, ``args``, ``env``.
            catalog: The ``mcp.json`` that the servers go into.
            keep: Names of servers that stay in the client.

        Raises:
            SettingsError: A file cannot be read or edited, or has something else in the place.
            UnknownNameError: There is no server of a name in ``keep``.
        """
        catalog = real_file(catalog)
        if catalog == self.file:
            raise SettingsError(f"{catalog}: is the client's own configuration: name another file with --catalog")
        current = read_file(self.file)
        base = self._undone(current).content if self.receipt else current
        document = read_document(self.client, base or b"", self.file)
        for name in keep:
            if name not in document.servers:
                raise UnknownNameError(f"{self.file}: no server {name!r}{near_names(name, document.servers)}")
        sorting = sort_servers(self.client, document.servers, keep)
        own = dict(entry)
        if self.client is McpClient.CODEX and (variables := variables_in(sorting.moved)):
            own["env_vars"] = variables  # Codex passes on no others
        self._check_own(document, own)
        gone = {*sorting.moved, OWN} & document.servers.keys()
        text = document.exchanged(gone, {OWN: document.source(OWN, own)})
        after = _encoded(text, base)
        catalog_base, catalog_after, notes = self._with_servers(catalog, sorting.moved)
        receipt = Receipt(
            file=str(self.file),
            before=digest(base),
            after=digest(after),
            folders=self.receipt.folders if self.receipt else _missing_folders(self.file),
            moved=tuple(sorting.moved),
            catalog=str(catalog),
            catalog_before=digest(catalog_base),
            catalog_after=digest(catalog_after),
        )
        changed = FileChange(catalog, read_file(catalog), catalog_after)
        left = self._catalog_undone() if self.receipt and self.receipt.catalog != receipt.catalog else None
        for name, fields in sorting.ignored.items():
            notes += (f"{name}: Callsheet does not read {', '.join(fields)}",)
        return ConfigChange(
            FileChange(self.file, current, after),
            (changed, left) if left else (changed,),
            self.place,
            receipt,
            (base, catalog_base),
            catalog,
            tuple(sorting.moved),
            sorting.stays,
            notes,
            secrets_in(document.value) | secrets_in(_catalog(catalog_after, catalog).value),
        )

    def uninstall(self) -> ConfigChange | None:
        """The change that undoes the installation; None if there is none.

        Raises:
            SettingsError: A file cannot be read or edited.
        """
        if self.receipt is None:
            return None
        current = read_file(self.file)
        undone = self._undone(current)
        left = self._catalog_undone()
        notes = (*undone.notes, *undone.conflicts)
        if left is None:
            notes += (f"{self.receipt.catalog} was changed since, so it stays as it is",)
        elif undone.conflicts:
            left, notes = None, (*notes, f"{self.receipt.catalog} and the backups in {self.place.folder} stay")
        return ConfigChange(
            FileChange(self.file, current, undone.content),
            (left,) if left else (),
            self.place,
            None,
            catalog=Path(self.receipt.catalog),
            moved=undone.restored,
            notes=notes,
            secrets=secrets_in(read_document(self.client, undone.content or b"", self.file).value),
            finished=not undone.conflicts,
        )

    def _undone(self, current: bytes | None) -> _Undone:
        """The configuration without Callsheet: the backup, or else the present content edited."""
        receipt = self.receipt
        if receipt is None:
            return _Undone(current, ())
        backup = self.place.backup(receipt.before)
        if current is None:
            return _Undone(backup, receipt.moved, (), (f"{self.file} was deleted since",) if backup else ())
        if digest(current) in (receipt.after, receipt.before):
            return _Undone(backup, receipt.moved)
        return self._edited(receipt, backup, current)

    def _edited(self, receipt: Receipt, backup: bytes | None, current: bytes) -> _Undone:
        """The present configuration, with the moved servers instead of Callsheet."""
        old = read_document(self.client, backup or b"", self.file)
        document = read_document(self.client, current, self.file)
        conflicts = [
            f"{name}: the client has another server of this name now, which stays"
            for name in receipt.moved
            if name in document.servers and document.servers[name] != old.servers[name]
        ]
        mine = OWN in document.servers and receipt.catalog in _words(document.servers[OWN])
        if OWN in document.servers and not mine:
            conflicts.append(f"{OWN}: this entry is not the one that was installed, so it stays")
        newline = newline_of(text_of(current, self.file))
        back = {
            name: _with_newlines(old.source_of(name), newline) for name in receipt.moved if name not in document.servers
        }
        content = _encoded(document.exchanged({OWN} if mine else (), back), current)
        rest = read_document(self.client, content, self.file)
        if not rest.servers and rest.key in rest.value and old.key not in old.value:
            content = _encoded(rest.without_servers(), current)
        if not receipt.before and not read_document(self.client, content, self.file).value:
            return _Undone(None, tuple(back), tuple(conflicts))
        note = f"{self.file} was changed since: the other changes stay"
        return _Undone(content, tuple(back), tuple(conflicts), (note,))

    def _catalog_undone(self) -> FileChange | None:
        """The catalog as it was before; None if it was changed since."""
        if self.receipt is None:
            return None
        file = Path(self.receipt.catalog)
        current = read_file(file)
        if digest(current) not in (self.receipt.catalog_after, self.receipt.catalog_before):
            return None
        return FileChange(file, current, self.place.backup(self.receipt.catalog_before))

    def _with_servers(
        self, file: Path, moved: Mapping[str, Mapping[str, Any]]
    ) -> tuple[bytes | None, bytes, tuple[str, ...]]:
        """The catalog before, the catalog with the servers, and what the user should know."""
        base, ours = read_file(file), frozenset[str]()
        if self.receipt and self.receipt.catalog == str(file):
            undone = self._catalog_undone()
            base, ours = (undone.after, ours) if undone else (base, frozenset(self.receipt.moved))
        document = _catalog(base, file)
        for name, entry in moved.items():
            if name in document.servers and name not in ours and document.servers[name] != entry:
                raise SettingsError(
                    f"{file}: has another server {name!r} already: name another file with --catalog, "
                    f"or leave this server in the client with --keep {name}. Nothing was written"
                )
        new = {name: document.source(name, entry) for name, entry in moved.items() if name not in document.servers}
        text = document.exchanged((), new) if new or document.servers else '{\n  "mcpServers": {}\n}\n'
        notes = () if moved or document.servers else (f"there is no server to move: add servers to {file}",)
        return base, _encoded(text, base), notes

    def _check_own(self, document: ConfigDocument, own: Mapping[str, Any]) -> None:
        there = document.servers.get(OWN)
        if there is not None and there != own:
            raise SettingsError(
                f"{self.file}: has an entry {OWN!r} already, which this command did not write: "
                f"{' '.join(_words(there)) or there}: remove or rename it first. Nothing was written"
            )


def _catalog(content: bytes | None, file: Path) -> JsoncDocument:
    """An ``mcp.json`` of Callsheet, which is JSON without comments."""
    text = text_of(content or b"", file)
    try:
        key = "servers" if "servers" in (found := json.loads(text or "{}")) and "mcpServers" not in found else None
    except (ValueError, TypeError, RecursionError) as error:
        raise SettingsError(f"{file}: not an mcp.json that Callsheet can read: {error}. Nothing was written") from error
    return JsoncDocument(text, key or "mcpServers", file)


def _encoded(text: str, before: bytes | None) -> bytes:
    mark = codecs.BOM_UTF8 if before and before.startswith(codecs.BOM_UTF8) else b""
    return mark + text.encode()


def _with_newlines(text: str, newline: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", newline)


def _words(entry: object) -> Sequence[str]:
    """The command line of an entry."""
    if not isinstance(entry, dict):
        return ()
    args = entry.get("args")
    words = [entry.get("command"), *(args if isinstance(args, list) else []), entry.get("url")]
    return [word for word in words if isinstance(word, str)]


def _missing_folders(file: Path) -> tuple[str, ...]:
    return tuple(str(folder) for folder in file.parents if not folder.exists())
