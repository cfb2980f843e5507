"""What an installation did, with the backups that undo it: a folder of Callsheet's data for each configuration."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.storage import private_folder, replace_bytes, replace_text, state_folder

_RECEIPT = "receipt.json"


class Receipt(Record):
    """What an installation did.

    Attributes:
        file: The client's configuration, with symbolic links resolved.
        before: SHA-256 of it before; empty if there was no file.
        after: SHA-256 of it after.
        folders: Folders that were created for it, innermost first.
        moved: Names of the servers that went into the catalog.
        catalog_before: SHA-256 of it before; empty if there was no file.
        catalog_after: SHA-256 of it after.
    """

    file: str
    before: str
    after: str
    folders: tuple[str, ...]
    moved: tuple[str, ...]
    catalog: str
    catalog_before: str
    catalog_after: str


class ReceiptFolder:
    """The receipt and the backups of one configuration."""

    def __init__(self, client: str, file: Path) -> None:
        key = hashlib.sha256(str(file).encode()).hexdigest()[:12]
        self.folder = state_folder() / "clients" / f"{client}-{key}"
        self.file = self.folder / _RECEIPT

    def read(self) -> Receipt | None:
        """The receipt; None if nothing is installed.

        Raises:
            SettingsError: It cannot be read.
        """
        try:
            return Receipt.model_validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise SettingsError(
                f"{self.file}: cannot be read, so nothing is changed; the backups are beside it"
            ) from error

    def write(self, receipt: Receipt | None) -> None:
        """Stores the receipt; None deletes it."""
        if receipt is None:
            self.file.unlink(missing_ok=True)
        else:
            replace_text(self.file, receipt.model_dump_json(indent=1))

    def keep(self, *contents: bytes | None) -> None:
        """Stores backups, each under its SHA-256, readable by their owner only.

        Raises:
            OSError: They cannot be written.
        """
        private_folder(self.folder)
        for content in contents:
            if content is not None:
                replace_bytes(self._backup(digest(content)), content)

    def backup(self, sha256: str) -> bytes | None:
        """A backup; None for the empty digest of a file that was not there.

        Raises:
            SettingsError: It is missing, or not what was stored.
        """
        if not sha256:
            return None
        file = self._backup(sha256)
        try:
            content = file.read_bytes()
        except OSError as error:
            raise SettingsError(f"{file}: the backup cannot be read: {error.strerror}") from error
        if digest(content) != sha256:
            raise SettingsError(f"{file}: the backup was changed, so it is not used")
        return content

    def tidy(self, *needed: str) -> None:
        """Deletes all backups but these, and the folder if it is empty then."""
        names = {self._backup(sha256).name for sha256 in needed if sha256}
        for file in self.folder.glob("backup-*"):
            if file.name not in names:
                file.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _backup(self, sha256: str) -> Path:
        return self.folder / f"backup-{sha256[:16]}"


def digest(content: bytes | None) -> str:
    """SHA-256 in hexadecimal; empty for None."""
    return "" if content is None else hashlib.sha256(content).hexdigest()
