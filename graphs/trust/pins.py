"""Pins: a tool is what it was when it was accepted, or it is not used.

A pin is the SHA-256 of a tool's definition exactly as its server sent it, kept beside that of the server's command
or address. On first use everything is pinned; after that only ``callsheet approve`` changes a pin.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from callsheet.graphs.catalog.formats.mcp_format import Entries, name_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.text.sanitizing import Hidden, hidden_in, one_line, strings_in
from callsheet.graphs.text.secret_patterns import masked

ChangeKind = Literal["new", "suspect", "changed", "removed", "command", "about"]
_LONGEST_KEPT = 65_536


class Pin(Record):
    """One accepted tool.

    Attributes:
        sha256: Of its definition.
        definition: The definition, for showing what changed; None if it is longer than 64 kB.
    """

    sha256: str
    definition: dict[str, Any] | None = None


class ServerPin(Record):
    """One server with what was accepted of it.

    Attributes:
        sha256: Of its command or address.
        command: The same for people, without anything secret.
        about: What it said of itself: name, description, instructions.
        tools: Its tools by name.
    """

    sha256: str
    command: dict[str, Any]
    about: dict[str, str]
    tools: dict[str, Pin]


@dataclass(frozen=True, slots=True)
class Listed:
    """What a server answers when it is listed.

    Attributes:
        server: How it is reached.
        about: What it says of itself: name, description, instructions.
        entries: Its tools as it sent them.
    """

    server: ServerConfig
    about: Mapping[str, str]
    entries: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between what was accepted and what a server says now.

    Attributes:
        agent: The server.
        kind: ``new``, ``changed`` or ``removed`` tool; ``suspect``: a new one whose texts give a model orders or hide
            something; ``command`` of the server; ``about``: what it says of itself.
        tool: Name of the tool; empty where it is about the server.
        before: What was accepted; None if nothing was, or it was too long to be kept.
        after: What there is now; None if there is nothing any more.
        sha256: Of what there is now; empty if there is nothing.
        book: The file that its pin is in.
    """

    agent: str
    kind: ChangeKind
    tool: str = ""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    sha256: str = ""
    book: str = ""

    @property
    def id(self) -> str:
        """``agent/tool``, or the agent alone."""
        return f"{self.agent}/{self.tool}" if self.tool else self.agent

    @property
    def quarantines(self) -> bool:
        """Whether something may not be used until it is accepted."""
        return self.kind in ("new", "suspect", "changed", "command")


@dataclass(frozen=True, slots=True)
class Admitted:
    """What may be used of a server's answer.

    Attributes:
        about: What it says of itself, in the words that were accepted.
        entries: The tools that are as they were accepted, with entries that are no tools at all, or share a name.
        digests: Name of each such tool -> SHA-256 of its definition.
        changes: What differs.
    """

    about: Mapping[str, str]
    entries: tuple[Any, ...]
    digests: Mapping[str, str]
    changes: tuple[Change, ...] = field(default=())


def digest(value: Any) -> str:
    """SHA-256 of a JSON value in one canonical form: keys sorted, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def digests(entries: Sequence[Any]) -> dict[str, str]:
    """Tool name -> SHA-256 of its definition, of the names that occur once."""
    return {name: digest(definition) for name, definition in Entries.of(entries).tools.items()}


def pinned(listed: Listed) -> ServerPin:
    """What a server says when it is met for the first time, accepted, but for what is suspect."""
    return ServerPin(
        sha256=_identity(listed.server),
        command=_shown_command(listed.server),
        about={key: "" if suspect(text) else text for key, text in listed.about.items()},
        tools={
            name: pin_of(definition)
            for name, definition in Entries.of(listed.entries).tools.items()
            if not _suspect_tool(name, definition)
        },
    )


def suspect(value: Any) -> bool:
    """Whether any text of a JSON value gives a model orders, or hides something from a person."""
    from callsheet.graphs.lint.injection_phrases import orders_in  # the rules of lint load catalogs themselves

    hidden = {Hidden.TAG, Hidden.BIDI, Hidden.CONTROL}
    texts = list(strings_in(value))
    return any(orders_in(*texts)) or any(hidden & hidden_in(text).keys() for text in texts)


def _suspect_tool(name: str, definition: Mapping[str, Any]) -> bool:
    """The same of a tool, whose name, wherever it is shown, must not pass for a line of ours or for another name."""
    return not name.isprintable() or one_line(name) != name or suspect(definition)


def pin_of(definition: Mapping[str, Any]) -> Pin:
    """One definition, accepted."""
    short = len(json.dumps(definition)) <= _LONGEST_KEPT
    return Pin(sha256=digest(definition), definition=dict(definition) if short else None)


def everything(listed: Listed) -> Admitted:
    """All of a server's answer, with nothing to compare it with."""
    return Admitted(listed.about, tuple(listed.entries), digests(listed.entries))


def compare(agent: str, pin: ServerPin, listed: Listed, *, agreed: Collection[str] = ()) -> Admitted:
    """What may be used of a server's answer, given what was accepted of it.

    Args:
        agent: The server's name.
        pin: What was accepted.
        listed: What it says now.
        agreed: Servers whose present command a person has agreed to; a changed command of these is no change.
    """
    entries, found = Entries.of(listed.entries), digests(listed.entries)
    now = entries.tools
    changes: list[Change] = []
    if _identity(listed.server) != pin.sha256 and agent not in agreed:
        changes.append(_new_command(agent, pin, listed))
    if dict(listed.about) != pin.about:
        changes.append(Change(agent, "about", "", pin.about, dict(listed.about), digest(dict(listed.about))))
    for name, definition in now.items():
        if name not in pin.tools:
            kind: ChangeKind = "suspect" if _suspect_tool(name, definition) else "new"
            changes.append(Change(agent, kind, name, None, definition, found[name]))
        elif found[name] != pin.tools[name].sha256:
            changes.append(Change(agent, "changed", name, pin.tools[name].definition, definition, found[name]))
    known = {*now, *entries.repeated}
    changes += [Change(agent, "removed", name, old.definition) for name, old in pin.tools.items() if name not in known]
    barred = {change.tool for change in changes if change.quarantines}
    usable = {name: found[name] for name in now if name not in barred and "" not in barred}
    kept = tuple(entry for entry in listed.entries if name_of(entry) in usable or name_of(entry) not in now)
    return Admitted(pin.about, kept, usable, tuple(changes))


def accepted(pin: ServerPin, change: Change) -> ServerPin:
    """The pins of a server once a person has accepted one change."""
    match change.kind:
        case "command":
            return pin.model_copy(update={"sha256": change.sha256, "command": dict(change.after or {})})
        case "about":
            return pin.model_copy(update={"about": dict(change.after or {})})
        case "removed":
            return pin.model_copy(update={"tools": {k: v for k, v in pin.tools.items() if k != change.tool}})
        case _:
            return pin.model_copy(update={"tools": {**pin.tools, change.tool: pin_of(change.after or {})}})


def _new_command(agent: str, pin: ServerPin, listed: Listed) -> Change:
    return Change(agent, "command", "", pin.command, _shown_command(listed.server), _identity(listed.server))


def _identity(server: ServerConfig) -> str:
    """SHA-256 of how a server is reached: names of variables and headers, never their values."""
    return digest(
        {
            "transport": server.transport,
            "command": server.command,
            "args": list(server.args),
            "cwd": server.cwd,
            "env": sorted(server.env),
            "url": server.url,
            "headers": sorted(server.headers),
        }
    )


def _shown_command(server: ServerConfig) -> dict[str, Any]:
    """The same for people, kept in a file: what looks like a secret among the arguments or in the address is masked."""
    if server.url:
        return {"url": masked([server.url])[0], "headers": sorted(server.headers)}
    return {
        "command": [server.command, *masked(server.args)],
        **({"cwd": server.cwd} if server.cwd else {}),
        **({"env": sorted(server.env)} if server.env else {}),
    }
