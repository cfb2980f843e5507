"""A change of a client's configuration and of the catalog behind it: shown first, then written as a whole."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.storage import locked, private_folder, replace_bytes
from callsheet.orchestrator.server.gateway.clients.config_document import LARGEST
from callsheet.orchestrator.server.gateway.clients.receipt import Receipt, ReceiptFolder


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after; None: there is no file.

    Attributes:
        file: The file itself, not a symbolic link to it.
    """

    file: Path
    before: bytes | None
    after: bytes | None

    @property
    def same(self) -> bool:
        """Whether nothing changes."""
        return self.before == self.after

    def check(self) -> None:
        """Checks that the file can be written, and has not changed since it was read.

        Raises:
            SettingsError: It cannot be written, or has changed.
        """
        if read_file(self.file) != self.before:
            raise SettingsError(f"{self.file}: another program has just changed it: run the command again")
        folder = next(one for one in self.file.parents if one.exists())
        wrong = next((one for one in (self.file, folder) if one.exists() and not os.access(one, os.W_OK)), None)
        if wrong and not self.same:
            raise SettingsError(f"{wrong}: not writable: nothing was written")

    def write(self) -> None:
        """Replaces the file atomically, with its permissions kept; a new one is for its owner only.

        Raises:
            OSError: It cannot be written.
        """
        if self.same:
            return
        if self.after is None:
            self.file.unlink(missing_ok=True)
            return
        private_folder(self.file.parent)
        mode = stat.S_IMODE(self.file.stat().st_mode) if self.before is not None else 0o600
        replace_bytes(self.file, self.after, mode=mode, exact=True)

    def reverse(self) -> FileChange:
        """The change that undoes this one."""
        return FileChange(self.file, self.after, self.before)


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """What ``install`` or ``uninstall`` is going to do.

    Attributes:
        place: Where receipt and backups are.
        backups: Contents that the receipt needs.
        catalog: The catalog of Callsheet.
        stays: Name -> reason, of servers that stay.
        secrets: Values in the files that no output may show.
        finished: Whether no backup is needed afterwards but those of the receipt.
    """

    config: FileChange
    catalogs: tuple[FileChange, ...]
    place: ReceiptFolder
    receipt: Receipt | None
    backups: tuple[bytes | None, ...] = ()
    catalog: Path = Path()
    moved: tuple[str, ...] = ()
    stays: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    secrets: frozenset[str] = frozenset()
    finished: bool = True

    @property
    def same(self) -> bool:
        """Whether no file changes."""
        return self.config.same and all(change.same for change in self.catalogs)

    def check(self) -> None:
        """Checks that all files can be written.

        Raises:
            SettingsError: One cannot.
        """
        for change in (self.config, *self.catalogs):
            change.check()

    def write(self) -> None:
        """Writes everything, or nothing.

        To install: backups, receipt, new catalog, configuration. To uninstall: configuration, then the rest. A
        process that ends in between leaves a configuration that works, and a receipt from which ``uninstall`` goes on.

        Raises:
            SettingsError: A file cannot be written; the others are as before.
            TrustError: Callsheet's own folder cannot be written.
        """
        with locked(self.place.file):
            self.check()
            old = self.place.read()
            written: list[FileChange] = []
            try:
                if self.receipt:
                    self.place.keep(*self.backups)
                    self.place.write(self.receipt)
                additions = [change for change in self.catalogs if self.receipt and change.after is not None]
                removals = [change for change in self.catalogs if change not in additions]
                for change in (*additions, self.config, *removals):
                    change.write()
                    written.append(change)
                self.place.write(self.receipt)
            except OSError as error:
                for change in reversed(written):
                    change.reverse().write()
                self.place.write(old)
                self._tidy(old)
                named = error.filename or self.config.file
                raise SettingsError(
                    f"{named}: cannot be written: {error.strerror or error}: nothing was changed"
                ) from error
            if self.config.after is None and old:
                for folder in old.folders:
                    with suppress(OSError):  # somebody else has put something into it
                        Path(folder).rmdir()
            if self.finished:
                self._tidy(self.receipt)

    def _tidy(self, receipt: Receipt | None) -> None:
        self.place.tidy(*((receipt.before, receipt.catalog_before) if receipt else ()))


def read_file(file: Path) -> bytes | None:
    """The content of a file; None if there is none.

    Raises:
        SettingsError: It cannot be read, is too large or is no file.
    """
    try:
        if file.exists() and not file.is_file():
            raise SettingsError(f"{file}: not a file. Nothing was written")
        if file.exists() and file.stat().st_size > LARGEST:
            raise SettingsError(
                f"{file}: {file.stat().st_size:,} bytes; at most {LARGEST:,} are read. Nothing was written"
            )
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}. Nothing was written") from error


def real_file(file: Path) -> Path:
    """The file itself, behind symbolic links.

    Raises:
        SettingsError: The links lead in a circle.
    """
    real = Path(os.path.realpath(file.expanduser()))
    if real.is_symlink():
        raise SettingsError(f"{file}: its symbolic links lead nowhere. Nothing was written")
    return real
