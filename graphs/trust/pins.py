"""Pins definitions of tools: a tool is used only if its definition is the accepted one.

A pin is the SHA-256 of a tool's definition exactly as its server sent it, stored with the hash of the server's command
or address. The first use pins everything; later, only ``callsheet approve`` changes a pin.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from callsheet.graphs.catalog.formats.manifests import Entries, name_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.errors import CatalogError, TrustError
from callsheet.graphs.storage import StoredFile, StoreError, file_named, state_file
from callsheet.graphs.text.credentials import masked
from callsheet.graphs.text.hidden import Hidden, escaped_line, hidden_in
from callsheet.graphs.text.unicode import strings_in
from callsheet.graphs.trust.variables import covered_names, given_by

ChangeKind = Literal["new", "suspect", "changed", "removed", "command", "about"]
_HIDDEN = frozenset({Hidden.TAG, Hidden.BIDI, Hidden.CONTROL})
_LONGEST_STORED = 65_536
"""Characters of the longest definition that is stored with its hash."""
_LARGEST_SERVER = 2_000_000
"""Characters that the definitions of one server may have together to be stored."""
_FORMAT = 1


class Pin(Record):
    """The pin of one accepted tool, with its definition, so that changes can be shown.

    The definition is None if it is longer than 64 kB, or if those of its server were together longer than 2 MB.

    Attributes:
        others: Other accepted definitions of the tool, which its server lists in the middle of a run.
        later: Whether the server lists the tool only in the middle of a run.
    """

    sha256: str
    definition: dict[str, Any] | None = None
    others: tuple[Pin, ...] = ()
    later: bool = False

    def accepts(self, sha256: str) -> bool:
        """Returns whether a definition with this hash is accepted."""
        return sha256 == self.sha256 or any(sha256 == other.sha256 for other in self.others)


class ServerPin(Record):
    """The accepted state of one server.

    Attributes:
        sha256: SHA-256 of its command or address.
        command: The command or address for people, without secrets.
        about: Its name, description and instructions.
        place: A number that grows with each listing that has new servers; 0 for pins that are older than these numbers.
    """

    sha256: str
    command: dict[str, Any]
    about: dict[str, str]
    tools: dict[str, Pin]
    place: int = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """A listing of a server: its name, description and instructions, and the tools as it sent them."""

    server: ServerConfig
    about: Mapping[str, str]
    entries: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between the accepted and the present state of a server.

    Attributes:
        kind: ``new``, ``changed`` or ``removed`` tool; ``suspect``: a new tool with hidden characters;
            ``command`` of the server; ``about``: the server's name, description or instructions.
        tool: Name of the tool; empty if the change concerns the server.
        before: The accepted definition; None if there is none, or it was too long to store.
        after, sha256: The present definition and its SHA-256; None and empty if it was removed.
        book: The file with its pin.
        pinned: SHA-256 of what was accepted when the two were compared; empty if nothing was.
        later: Whether the server listed the change in the middle of a run, although its first listing was accepted.
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
        """Returns the id of the tool, ``agent/tool``, or of the agent if the change concerns the server."""
        return f"{self.agent}/{self.tool}" if self.tool else self.agent

    @property
    def quarantines(self) -> bool:
        """Returns whether the tool or the server is not used until a person accepts the change."""
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
    """Returns the SHA-256 of a JSON value in canonical form: sorted keys, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def digests(entries: Sequence[Any]) -> dict[str, str]:
    """Returns tool name -> SHA-256 of its definition, for names that occur once."""
    return {name: digest(definition) for name, definition in Entries.of(entries).tools.items()}


def first_pins(listed: Listed, place: int = 0) -> ServerPin:
    """Returns the pins of a new server: everything is accepted, except tools with hidden characters."""
    definitions = Entries.of(listed.entries).tools
    stored = sum(len(json.dumps(definition)) for definition in definitions.values()) <= _LARGEST_SERVER
    tools = dict[str, Pin]()
    for name, definition in definitions.items():
        if not _suspect_tool(name, definition):
            tools[name] = pin_of(definition, stored=stored)
    return ServerPin(
        sha256=server_identity(listed.server),
        command=_shown_command(listed.server),
        about={key: "" if hides_text(text) else text for key, text in listed.about.items()},
        tools=tools,
        place=place,
    )


def hides_text(value: Any) -> bool:
    """Returns whether a JSON value has invisible characters in any text or key."""
    return any(_HIDDEN & hidden_in(text).keys() for text in strings_in(value))


def _suspect_tool(name: str, definition: Mapping[str, Any]) -> bool:
    """Returns whether a definition hides text, or its name imitates a line of our output or another name."""
    return not name.isprintable() or escaped_line(name) != name or hides_text(definition)


def pin_of(definition: Mapping[str, Any], *, stored: bool = True) -> Pin:
    """Returns the pin of a definition, with the definition unless it is too long or ``stored`` is false."""
    storable = stored and len(json.dumps(definition)) <= _LONGEST_STORED
    return Pin(sha256=digest(definition), definition=dict(definition) if storable else None)


def everything(listed: Listed) -> Admitted:
    """Accepts a whole listing without a comparison."""
    return Admitted(listed.about, tuple(listed.entries), digests(listed.entries))


def _compare(agent: str, pin: ServerPin, listed: Listed, *, agreed: Collection[str], book: str) -> Admitted:
    """Compares a listing with the pins of its server, and returns the accepted part and the changes."""
    entries = Entries.of(listed.entries)
    hashes = digests(listed.entries)
    differences = [
        *_changes_of_server(agent, pin, listed, agreed=agent in agreed),
        *_changes_of_tools(agent, pin, entries, hashes),
    ]
    changes = tuple(replace(change, book=book, pinned=_standing(pin, change)) for change in differences)

    quarantined = {change.tool for change in changes if change.quarantines}
    usable = dict[str, str]()
    if "" not in quarantined:  # another command or address holds back all tools of the server
        usable = {name: hashes[name] for name in entries.tools if name not in quarantined}
    admitted = list[Any]()
    for entry in listed.entries:
        name = name_of(entry)
        # What is no tool (invalid, or one of several of a name) stays, so that it is reported when it is read.
        if name in usable or name not in entries.tools:
            admitted.append(entry)
    return Admitted(pin.about, tuple(admitted), usable, changes, pin.place)


def _changes_of_server(agent: str, pin: ServerPin, listed: Listed, *, agreed: bool) -> Iterator[Change]:
    """Yields what changed of the server itself; a command that a person ``agreed`` to is no change."""
    identity = server_identity(listed.server)
    if identity != pin.sha256 and not agreed:
        yield Change(agent, "command", "", pin.command, _shown_command(listed.server), identity)
    about = dict(listed.about)
    if about != pin.about:
        yield Change(agent, "about", "", pin.about, about, digest(about))


def _changes_of_tools(agent: str, pin: ServerPin, entries: Entries, hashes: Mapping[str, str]) -> Iterator[Change]:
    """Yields the tools that are new, changed or gone."""
    for name, definition in entries.tools.items():
        accepted = pin.tools.get(name)
        if accepted is None:
            kind: ChangeKind = "suspect" if _suspect_tool(name, definition) else "new"
            yield Change(agent, kind, name, None, definition, hashes[name])
        elif not accepted.accepts(hashes[name]):
            yield Change(agent, "changed", name, accepted.definition, definition, hashes[name])
    for name, accepted in pin.tools.items():
        # A tool that its server lists only in the middle of a run is not gone while it is not listed.
        if name not in entries.tools and name not in entries.repeated and not accepted.later:
            yield Change(agent, "removed", name, accepted.definition)


def _standing(pin: ServerPin, change: Change) -> str:
    """Returns the SHA-256 of what is accepted in the place of a change; empty if nothing is."""
    match change.kind:
        case "command":
            return pin.sha256
        case "about":
            return digest(pin.about)
        case _:
            accepted = pin.tools.get(change.tool)
            return "" if accepted is None else accepted.sha256


def _accepted(pin: ServerPin, change: Change) -> ServerPin:
    """Returns the pins of a server after a person has accepted a change."""
    match change.kind:
        case "command":
            return pin.model_copy(update={"sha256": change.sha256, "command": dict(change.after or {})})
        case "about":
            return pin.model_copy(update={"about": dict(change.after or {})})
        case "removed":
            tools = {name: tool for name, tool in pin.tools.items() if name != change.tool}
            return pin.model_copy(update={"tools": tools})
        case _:
            tools = {**pin.tools, change.tool: _accepted_tool(pin, change)}
            return pin.model_copy(update={"tools": tools})


def _accepted_tool(pin: ServerPin, change: Change) -> Pin:
    """Returns the pin of a tool after its change was accepted.

    If the change was seen in the middle of a run, what the server lists at its start stays accepted too.
    """
    new = pin_of(change.after or {})
    old = pin.tools.get(change.tool)
    if not change.later:
        return new
    if old is None:
        return new.model_copy(update={"later": True})
    return old.model_copy(update={"others": (*old.others, new)})


def server_identity(server: ServerConfig) -> str:
    """Returns the SHA-256 of a server's configuration.

    It covers the names of variables and headers, the variables of the environment that they contain, and the values of
    those that are not known to be harmless.
    """
    identity: dict[str, Any] = {
        "transport": server.transport,
        "command": server.command,
        "args": list(server.args),
        "cwd": server.cwd,
        "env": sorted(server.env),
        "url": server.url,
        "headers": sorted(server.headers),
    }
    if server.openapi:
        identity |= {"openapi": server.openapi, "tag": server.tag}
    identity.update(covered_names(server))
    return digest(identity)


def _shown_command(server: ServerConfig) -> dict[str, Any]:
    """Returns the configuration for people, with likely secrets in arguments and address masked."""
    shown = dict[str, Any]()
    if server.openapi:
        shown["openapi"] = masked([server.openapi])[0]
    if server.url:
        shown["url"] = masked([server.url])[0]
    if server.command:
        shown["command"] = [server.command, *masked(server.args)]
    if server.cwd:
        shown["cwd"] = server.cwd
    variables = list(map(str, given_by(server)))
    if variables:
        is_process = server.command and not server.openapi
        shown["env" if is_process else "headers"] = variables
    return shown


class _File(Record):
    callsheet_pins: int
    servers: dict[str, ServerPin]


class PinBook:
    """The pins of one configuration, in a file that is created with the first pin.

    An unreadable file is an error and does not count as empty; otherwise, a damaged file would accept everything again.
    """

    def __init__(self, file: str | Path | StoredFile) -> None:
        self.file = file_named(file)

    @classmethod
    def of(cls, config: Path, file: str | Path | None = None) -> PinBook:
        """Returns the pins of an ``mcp.json``.

        The file is ``file`` or ``CALLSHEET_PINS``, otherwise one in the shared store or in the user's data folder.
        """
        path = file or os.environ.get("CALLSHEET_PINS")
        if path:
            return cls(path)
        where = str(config.resolve())
        name = f"{config.stem}-{hashlib.sha256(where.encode()).hexdigest()[:12]}.json"
        return cls(state_file(f"pins/{name}"))

    def admit(self, listings: Mapping[str, Listed], *, agreed: Collection[str] = ()) -> dict[str, Admitted]:
        """Pins servers that are new, and returns the accepted part of each listing.

        Raises:
            TrustError: The file cannot be read, or a new pin cannot be written.
        """
        pins = self.servers()
        new = [name for name in listings if name not in pins]
        if new:
            with self.file.locked():
                # Another process may have pinned them in the meantime: its pins stand.
                known = self.servers()
                place = 1 + max((server.place for server in known.values()), default=0)
                pins = {**{name: first_pins(listings[name], place) for name in new}, **known}
                self._write(pins)
        admitted = dict[str, Admitted]()
        for name, listed in listings.items():
            admitted[name] = _compare(name, pins[name], listed, agreed=agreed, book=str(self.file))
        return admitted

    def accept(self, changes: Sequence[Change]) -> None:
        """Stores the changes that a person has accepted as new pins.

        Raises:
            TrustError: The file cannot be read or written, no longer has the server, or somebody else accepted
                something else in the meantime.
        """
        with self.file.locked():
            pins = self.servers()
            for change in changes:
                if change.agent not in pins:
                    raise TrustError(
                        f"{escaped_line(change.id)}: {self.file} no longer has pins of this server, so nothing was "
                        "accepted: restore the file, or list the server again"
                    )
                if _standing(pins[change.agent], change) not in (change.pinned, change.sha256):
                    raise TrustError(
                        f"{escaped_line(change.id)}: another definition was accepted meanwhile: review it again"
                    )
                pins[change.agent] = _accepted(pins[change.agent], change)
            self._write(pins)

    def servers(self) -> dict[str, ServerPin]:
        """Returns the pins by server; empty if there is no file yet.

        Raises:
            TrustError: The file cannot be read, or is damaged.
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
        if not isinstance(content, dict) or content.get("callsheet_pins") != _FORMAT:
            raise self._damaged(f"it is not a file of pins of format {_FORMAT}")
        try:
            servers = _File(**content).servers
        except (CatalogError, TypeError) as error:
            raise self._damaged(str(error)) from error
        self._check(servers)
        return servers

    def _check(self, servers: Mapping[str, ServerPin]) -> None:
        """Refuses definitions that do not have the hash that is stored with them."""
        for name, server in servers.items():
            for tool, pin in server.tools.items():
                for accepted in (pin, *pin.others):
                    if accepted.definition is not None and digest(accepted.definition) != accepted.sha256:
                        raise self._damaged(f"the definition of {name}/{tool} does not fit its SHA-256")

    def _write(self, pins: Mapping[str, ServerPin]) -> None:
        body = {"callsheet_pins": _FORMAT, "servers": {name: pin.model_dump() for name, pin in sorted(pins.items())}}
        self.file.replace(json.dumps(body, indent=1).encode("ascii"))  # also half of a surrogate pair can be stored

    def _damaged(self, why: str) -> TrustError:
        return TrustError(
            f"the pins in {self.file} are not reliable, so nothing is used: {why}: restore the file, "
            "or delete it to accept the present definitions of the servers"
        )
