"""The file that stores pins."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from callsheet.graphs.catalog.errors import CatalogError, TrustError
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.storage import StoredFile, StoreError, file_named, state_file
from callsheet.graphs.text.sanitizing import one_line
from callsheet.graphs.trust.pins import Admitted, Change, Listed, ServerPin, accepted, compare, digest, pinned, standing

FORMAT = 1


class _File(Record):
    callsheet_pins: int
    servers: dict[str, ServerPin]


class PinBook:
    """The pins of one configuration. An unreadable file is an error, not an empty book.

    Args:
        file: The file, its path, or its name in the shared store (``store:...``); the first pin creates it.
    """

    def __init__(self, file: str | Path | StoredFile) -> None:
        self.file = file_named(file)

    @classmethod
    def of(cls, config: Path, file: str | Path | None = None) -> PinBook:
        """The book of a configuration file.

        Args:
            config: The ``mcp.json``.
            file: The file of the pins; by default ``CALLSHEET_PINS``, otherwise a file in the shared store, or else in
                the user's data folder.
        """
        if path := file or os.environ.get("CALLSHEET_PINS"):
            return cls(path)
        where = str(config.resolve())
        name = f"{config.stem}-{hashlib.sha256(where.encode()).hexdigest()[:12]}.json"
        return cls(state_file(f"pins/{name}"))

    def admit(self, listings: Mapping[str, Listed], *, agreed: Collection[str] = ()) -> dict[str, Admitted]:
        """The accepted parts of listings; pins servers that are new.

        Raises:
            TrustError: The file cannot be read, or a new pin cannot be written.
        """
        pins = self.servers()
        if new := [name for name in listings if name not in pins]:
            with self.file.locked():
                pins = {**{name: pinned(listings[name]) for name in new}, **self.servers()}
                self._write(pins)
        return {name: self._compared(name, pins[name], listed, agreed) for name, listed in listings.items()}

    def accept(self, changes: Sequence[Change]) -> None:
        """Stores changes that a person has accepted as new pins.

        Raises:
            TrustError: The file cannot be read or written, no longer has the server, or somebody else accepted
                something else in the meantime.
        """
        with self.file.locked():
            pins = self.servers()
            for change in changes:
                if change.agent not in pins:
                    raise TrustError(
                        f"{one_line(change.id)}: {self.file} no longer has pins of this server, so nothing was "
                        "accepted: restore the file, or list the server again"
                    )
                if standing(pins[change.agent], change) not in (change.pinned, change.sha256):
                    raise TrustError(
                        f"{one_line(change.id)}: something else was accepted since this was shown: look again"
                    )
                pins[change.agent] = accepted(pins[change.agent], change)
            self._write(pins)

    def servers(self) -> dict[str, ServerPin]:
        """The pins by server; empty if there is no file yet.

        Raises:
            TrustError: The file is damaged, or has another format.
        """
        try:
            content = json.loads(self.file.text())
        except FileNotFoundError:
            return {}
        except StoreError as error:
            raise TrustError(f"the pins cannot be read, so nothing is used: {error}") from error
        except OSError as error:
            raise TrustError(
                f"the pins in {self.file} cannot be read, so nothing is used: {error.strerror}: make the file readable"
            ) from error
        except (ValueError, RecursionError) as error:
            raise self._damaged(str(error)) from error
        if not isinstance(content, dict) or content.get("callsheet_pins") != FORMAT:
            raise self._damaged(f"it is not a file of pins of format {FORMAT}")
        try:
            servers = _File(**content).servers
        except (CatalogError, TypeError) as error:
            raise self._damaged(str(error)) from error
        self._check(servers)
        return servers

    def _compared(self, name: str, pin: ServerPin, listed: Listed, agreed: Collection[str]) -> Admitted:
        admitted = compare(name, pin, listed, agreed=agreed)
        book = str(self.file)
        changes = (replace(change, book=book, pinned=standing(pin, change)) for change in admitted.changes)
        return replace(admitted, changes=tuple(changes))

    def _check(self, servers: Mapping[str, ServerPin]) -> None:
        for name, server in servers.items():
            for tool, pin in server.tools.items():
                if pin.definition is not None and digest(pin.definition) != pin.sha256:
                    raise self._damaged(f"the definition of {name}/{tool} does not fit its SHA-256")

    def _write(self, pins: Mapping[str, ServerPin]) -> None:
        body = {"callsheet_pins": FORMAT, "servers": {name: pin.model_dump() for name, pin in sorted(pins.items())}}
        self.file.replace(json.dumps(body, indent=1).encode("ascii"))  # also half of a surrogate pair can be stored

    def _damaged(self, why: str) -> TrustError:
        return TrustError(
            f"the pins in {self.file} are not reliable, so nothing is used: {why}: restore the file, "
            "or delete it to accept the present definitions of the servers"
        )
