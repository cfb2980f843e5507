"""Pins: a tool is used only if its definition is the accepted one.

A pin is the SHA-256 of a tool's definition exactly as its server sent it, stored with that of the server's command
or address. The first use pins everything; later, only ``callsheet approve`` changes a pin.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from callsheet.graphs.catalog.errors import CatalogError, TrustError
from callsheet.graphs.catalog.formats.manifests import Entries, name_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.storage import StoredFile, StoreError, file_named, state_file
from callsheet.graphs.text.sanitizing import Hidden, hidden_in, masked, one_line, strings_in
from callsheet.graphs.trust.variables import covered, given_by

ChangeKind = Literal["new", "suspect", "changed", "removed", "command", "about"]
_HIDDEN = frozenset({Hidden.TAG, Hidden.BIDI, Hidden.CONTROL})
_LONGEST_STORED, _LARGEST_SERVER, _FORMAT = 65_536, 2_000_000, 1


class Pin(Record):
    """One accepted tool, with its definition to show changes.

    That is None if it is longer than 64 kB, or those of its server together were longer than 2 MB when it was accepted.

    Attributes:
        others: Other accepted definitions of the same tool, which its server lists in the middle of a run.
        later: Whether the server lists the tool in the middle of a run only.
    """

    sha256: str
    definition: dict[str, Any] | None = None
    others: tuple[Pin, ...] = ()
    later: bool = False

    def accepts(self, sha256: str) -> bool:
        """Whether a definition with this hash is accepted."""
        return sha256 == self.sha256 or any(sha256 == other.sha256 for other in self.others)


class ServerPin(Record):
    """The accepted state of one server.

    Attributes:
        sha256: SHA-256 of its command or address.
        command: The command or address for people, without secrets.
        about: Its name, description and instructions.
        place: A number that grows with each listing that has new servers; 0: from before there were such numbers.
    """

    sha256: str
    command: dict[str, Any]
    about: dict[str, str]
    tools: dict[str, Pin]
    place: int = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """The listing of a server: its name, description and instructions, and its tools as it sent them."""

    server: ServerConfig
    about: Mapping[str, str]
    entries: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between the accepted and the present state of a server.

    Attributes:
        kind: ``new``, ``changed`` or ``removed`` tool; ``suspect``: a new tool whose name or texts hide characters;
            ``command`` of the server; ``about``: the server's name, description or instructions.
        tool: Name of the tool; empty if the change concerns the server.
        before: The accepted definition; None if there is none, or it was too long to store.
        after, sha256: The present definition and its SHA-256; None and empty if it was removed.
        book: The file with its pin.
        pinned: SHA-256 of what was accepted when the two were compared; empty if nothing was.
        later: Whether the server listed it in the middle of a run: its first listing is as accepted.
    """

    agent: str
    kind: ChangeKind
    tool: str = ""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    sha256: str = ""
    book: str = ""
    pinned: str = ""
    later: bool = False

    @property
    def id(self) -> str:
        """``agent/tool``, or the agent alone."""
        return f"{self.agent}/{self.tool}" if self.tool else self.agent

    @property
    def quarantines(self) -> bool:
        """Whether the change must be accepted before use."""
        return self.kind in ("new", "suspect", "changed", "command")


@dataclass(frozen=True, slots=True)
class Admitted:
    """The accepted part of a listing.

    Attributes:
        entries: The tools with accepted definitions, and entries that are invalid or share a name.
        digests: Name of each accepted tool -> SHA-256 of its definition.
        place: When the server was first pinned, as in ``ServerPin``.
    """

    about: Mapping[str, str]
    entries: tuple[Any, ...]
    digests: Mapping[str, str]
    changes: tuple[Change, ...] = field(default=())
    place: int = 0


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form: sorted keys, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def digests(entries: Sequence[Any]) -> dict[str, str]:
    """Tool name -> SHA-256 of its definition, for names that occur once."""
    return {name: digest(definition) for name, definition in Entries.of(entries).tools.items()}


def pinned(listed: Listed, place: int = 0) -> ServerPin:
    """Returns the pins of a new server: everything is accepted, except what has hidden characters."""
    definitions = Entries.of(listed.entries).tools
    small = sum(len(json.dumps(definition)) for definition in definitions.values()) <= _LARGEST_SERVER
    return ServerPin(
        sha256=server_identity(listed.server),
        command=_shown_command(listed.server),
        about={key: "" if hides_text(text) else text for key, text in listed.about.items()},
        tools={
            name: pin_of(definition, stored=small)
            for name, definition in definitions.items()
            if not _suspect_tool(name, definition)
        },
        place=place,
    )


def hides_text(value: Any) -> bool:
    """Returns whether any text of a JSON value, keys included, has characters that people do not see."""
    return any(_HIDDEN & hidden_in(text).keys() for text in strings_in(value))


def _suspect_tool(name: str, definition: Mapping[str, Any]) -> bool:
    """Returns whether a definition hides text, or its name imitates a line of our output or another name."""
    return not name.isprintable() or one_line(name) != name or hides_text(definition)


def pin_of(definition: Mapping[str, Any], *, stored: bool = True) -> Pin:
    """The pin of a definition; with the definition itself, unless that is too long or ``stored`` is false."""
    storable = stored and len(json.dumps(definition)) <= _LONGEST_STORED
    return Pin(sha256=digest(definition), definition=dict(definition) if storable else None)


def everything(listed: Listed) -> Admitted:
    """A whole listing as accepted, without a comparison."""
    return Admitted(listed.about, tuple(listed.entries), digests(listed.entries))


def _compare(agent: str, pin: ServerPin, listed: Listed, *, agreed: Collection[str], book: str) -> Admitted:
    """The accepted part of a listing, by the pins of its server in a book."""
    entries, hashes = Entries.of(listed.entries), digests(listed.entries)
    now = entries.tools
    changes: list[Change] = []
    if (command := server_identity(listed.server)) != pin.sha256 and agent not in agreed:
        changes.append(Change(agent, "command", "", pin.command, _shown_command(listed.server), command))
    if dict(listed.about) != pin.about:
        changes.append(Change(agent, "about", "", pin.about, dict(listed.about), digest(dict(listed.about))))
    for name, definition in now.items():
        if name not in pin.tools:
            kind: ChangeKind = "suspect" if _suspect_tool(name, definition) else "new"
            changes.append(Change(agent, kind, name, None, definition, hashes[name]))
        elif not pin.tools[name].accepts(hashes[name]):
            changes.append(Change(agent, "changed", name, pin.tools[name].definition, definition, hashes[name]))
    present = {*now, *entries.repeated}
    changes += [
        Change(agent, "removed", name, old.definition)
        for name, old in pin.tools.items()
        if name not in present and not old.later
    ]
    quarantined = {change.tool for change in changes if change.quarantines}
    usable = {name: hashes[name] for name in now if name not in quarantined and "" not in quarantined}
    admitted = tuple(entry for entry in listed.entries if name_of(entry) in usable or name_of(entry) not in now)
    full = (replace(change, book=book, pinned=_standing(pin, change)) for change in changes)
    return Admitted(pin.about, admitted, usable, tuple(full), pin.place)


def _standing(pin: ServerPin, change: Change) -> str:
    """SHA-256 of what is accepted in the place of a change; empty if nothing is."""
    match change.kind:
        case "command":
            return pin.sha256
        case "about":
            return digest(pin.about)
        case _:
            return pin.tools[change.tool].sha256 if change.tool in pin.tools else ""


def _accepted(pin: ServerPin, change: Change) -> ServerPin:
    """The pins of a server after a person has accepted a change."""
    match change.kind:
        case "command":
            return pin.model_copy(update={"sha256": change.sha256, "command": dict(change.after or {})})
        case "about":
            return pin.model_copy(update={"about": dict(change.after or {})})
        case "removed":
            return pin.model_copy(update={"tools": {k: v for k, v in pin.tools.items() if k != change.tool}})
        case _:
            return pin.model_copy(update={"tools": {**pin.tools, change.tool: _accepted_tool(pin, change)}})


def _accepted_tool(pin: ServerPin, change: Change) -> Pin:
    """The pin of a tool after its change was accepted; what its server lists at its start stays accepted too."""
    new, old = pin_of(change.after or {}), pin.tools.get(change.tool)
    if not change.later:
        return new
    if old is None:
        return new.model_copy(update={"later": True})
    return old.model_copy(update={"others": (*old.others, new)})


def server_identity(server: ServerConfig) -> str:
    """SHA-256 of a server's configuration.

    Of variables and headers, it covers names, which variables of the environment they contain, and the values of those
    variables that are not known to be harmless.
    """
    return digest(
        {
            "transport": server.transport,
            "command": server.command,
            "args": list(server.args),
            "cwd": server.cwd,
            "env": sorted(server.env),
            "url": server.url,
            "headers": sorted(server.headers),
            **({"openapi": server.openapi, "tag": server.tag} if server.openapi else {}),
            **covered(server),
        }
    )


def _shown_command(server: ServerConfig) -> dict[str, Any]:
    """The configuration for people, with likely secrets in arguments and address masked."""
    addresses = {"openapi": server.openapi, "url": server.url or ""}
    shown = {
        **{name: masked([address])[0] for name, address in addresses.items() if address},
        "command": [server.command, *masked(server.args)] if server.command else [],
        "cwd": server.cwd,
        "env" if server.command and not server.openapi else "headers": list(map(str, given_by(server))),
    }
    return {name: value for name, value in shown.items() if value}


class _File(Record):
    callsheet_pins: int
    servers: dict[str, ServerPin]


class PinBook:
    """The pins of one configuration, in a file that the first pin creates. An unreadable file is no empty book."""

    def __init__(self, file: str | Path | StoredFile) -> None:
        self.file = file_named(file)

    @classmethod
    def of(cls, config: Path, file: str | Path | None = None) -> PinBook:
        """The book of an ``mcp.json``.

        Its file is by default ``CALLSHEET_PINS``, otherwise in the shared store, or else in the user's data folder.
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
                known = self.servers()
                place = 1 + max((server.place for server in known.values()), default=0)
                pins = {**{name: pinned(listings[name], place) for name in new}, **known}
                self._write(pins)
        book = str(self.file)
        return {name: _compare(name, pins[name], said, agreed=agreed, book=book) for name, said in listings.items()}

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
                if _standing(pins[change.agent], change) not in (change.pinned, change.sha256):
                    raise TrustError(
                        f"{one_line(change.id)}: something else was accepted since this was shown: look again"
                    )
                pins[change.agent] = _accepted(pins[change.agent], change)
            self._write(pins)

    def servers(self) -> dict[str, ServerPin]:
        """The pins by server; empty if there is no file yet."""
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
        if not isinstance(content, dict) or content.get("callsheet_pins") != _FORMAT:
            raise self._damaged(f"it is not a file of pins of format {_FORMAT}")
        try:
            servers = _File(**content).servers
        except (CatalogError, TypeError) as error:
            raise self._damaged(str(error)) from error
        self._check(servers)
        return servers

    def _check(self, servers: Mapping[str, ServerPin]) -> None:
        for name, server in servers.items():
            for tool, pin in server.tools.items():
                for one in (pin, *pin.others):
                    if one.definition is not None and digest(one.definition) != one.sha256:
                        raise self._damaged(f"the definition of {name}/{tool} does not fit its SHA-256")

    def _write(self, pins: Mapping[str, ServerPin]) -> None:
        body = {"callsheet_pins": _FORMAT, "servers": {name: pin.model_dump() for name, pin in sorted(pins.items())}}
        self.file.replace(json.dumps(body, indent=1).encode("ascii"))  # also half of a surrogate pair can be stored

    def _damaged(self, why: str) -> TrustError:
        return TrustError(
            f"the pins in {self.file} are not reliable, so nothing is used: {why}: restore the file, "
            "or delete it to accept the present definitions of the servers"
        )
