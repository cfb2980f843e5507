"""Stores what a person has consented to: commands to start, folders to read, and tools to call without approval."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Literal

from callsheet.graphs.catalog.formats.server_config import ServerConfig, is_address
from callsheet.graphs.catalog.labels import catalog_key
from callsheet.graphs.catalog.model import Catalog, Record, Tool
from callsheet.graphs.errors import TrustError
from callsheet.graphs.storage import StoredFile, StoreError, state_file, yes_from_environment
from callsheet.graphs.text.hidden import escaped_line
from callsheet.graphs.trust.harm import harm_of
from callsheet.graphs.trust.pins import digest, server_identity
from callsheet.graphs.trust.variables import given_by

_COMMANDS = "start these commands"
_FOLDERS = "read these folders"
_SPECIFICATIONS = "read these specifications"
_TOOLKITS = "import these toolkits"
CONNECTS = "connect to these servers"
"""What a start does that connects to a server of a card on another host than the card; the rest works without it."""
_IN_FRONT = (
    '\nA pattern of the policy\'s "commands" must match the variables that are shown with their values, too: '
    '"NAME=* uvx *"'
)


@dataclass(frozen=True, slots=True)
class Start:
    """What loading a configuration starts or reads for one server.

    Attributes:
        line: The command line, the class of a toolkit with its arguments, the address, or the folder of documents to
            read, with variables not expanded.
        folder: Working folder of the command; empty for an address.
        names: The environment variables or headers, each with the variables of the user's environment that it contains.
            Those that are not known to be harmless are shown with their values, in which likely secrets are masked.
        grants, does: Additional permissions of the server, and what starting it does, in words.
        covered: The part of the variables or headers that the consent covers.
    """

    agent: str
    line: str
    folder: str
    names: tuple[str, ...]
    grants: tuple[str, ...]
    does: str
    covered: tuple[tuple[str, str | None, tuple[str, ...]], ...] = field(default=(), repr=False)

    @property
    def digest(self) -> str:
        """Returns the SHA-256 under which consent is stored; it covers everything except the name."""
        content = [self.line, self.folder, self.covered, self.grants, self.does]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    @property
    def settings(self) -> tuple[str, ...]:
        """Returns the variables with values, written as a shell has them before a command."""
        return tuple(f"{name}={value}" for name, value, _ in self.covered if value is not None)

    def __str__(self) -> str:
        """One line for people, with hidden characters escaped."""
        folder = f"  (in {self.folder})" if self.folder else ""
        names = f"  with {', '.join(self.names)}" if self.names else ""
        grants = "".join(f"; {grant}" for grant in self.grants)
        return escaped_line(f"{self.agent}: {self.line}{folder}{names}{grants}")


def starts_of(servers: Mapping[str, ServerConfig]) -> tuple[Start, ...]:
    """Returns what needs consent before these servers are started and these folders of documents are read.

    These are: every process, addresses that specifications are fetched from or that receive environment variables,
    servers with additional permissions, and every folder.
    """
    return tuple(
        _start(name, server)
        for name, server in servers.items()
        if server.command or server.documents or is_address(server.openapi) or _is_risky(server)
    )


def check_agreed(
    servers: Mapping[str, ServerConfig],
    where: str,
    *,
    yes: bool = False,
    commands: Sequence[str] | None = None,
) -> frozenset[str]:
    """Returns the servers whose present command has stored consent; all their commands may run.

    ``where`` is the file that they come from, ``commands`` are those that the policy allows; None: any. ``yes``
    consents to all of them, as ``CALLSHEET_YES`` does.

    Raises:
        TrustError: A command has no consent, or the policy forbids it; the message shows each.
    """
    starts = starts_of(servers)
    if commands is not None:
        _check_policy([start for start in starts if start.folder], where, commands)
    known = Agreements().known()
    new = [start for start in starts if start.digest not in known]
    if new and not (yes or yes_from_environment()):
        raise TrustError(
            f"{where} would {doing(new)}:\n{_lines(new)}\n"
            "To allow this, use --yes, or run `callsheet index --catalog ...` once in a terminal. "
            "In Python, use yes=True; elsewhere, CALLSHEET_YES=1"
        )
    return frozenset(start.agent for start in starts if start.digest in known)


def _check_policy(commands: Sequence[Start], where: str, allowed: Sequence[str]) -> None:
    """Raises a ``TrustError`` that shows each command that matches no pattern of the policy."""
    forbidden = [start for start in commands if not _is_allowed(start, allowed)]
    if not forbidden:
        return
    cure = _IN_FRONT if any(start.settings for start in forbidden) else ""
    raise TrustError(f"{where} would start commands that the policy does not allow:\n{_lines(forbidden)}{cure}")


def _is_allowed(start: Start, patterns: Sequence[str]) -> bool:
    """Returns whether a pattern matches a command line with the variables in front that may decide what runs."""
    line = " ".join((*start.settings, start.line))
    return any(fnmatchcase(line, pattern) for pattern in patterns)


def doing(starts: Collection[Start]) -> str:
    """Describes what the starts do, as a phrase that introduces a list of them."""
    return " and ".join(sorted({start.does for start in starts}, reverse=True))


class Agreements:
    """The stored consents, as digests in a file of the shared store or of the user's data folder."""

    def __init__(self) -> None:
        self.file = state_file("agreed.json")

    def known(self) -> frozenset[str]:
        """Returns all stored digests; empty if the file is missing or unreadable, so that the person is asked again."""
        try:
            content = json.loads(self.file.text())
        except StoreError as error:
            raise TrustError(f"consents cannot be read: {error}") from error
        except (OSError, ValueError, RecursionError):
            return frozenset()
        return frozenset(map(str, content)) if isinstance(content, list) else frozenset()

    def add(self, agreed: Iterable[Start | str]) -> None:
        """Stores a person's consent.

        Args:
            agreed: What a configuration starts or reads (``Start``), or a digest from ``belief_digest``, which stands
                for an answer about a server's read-only marks.
        """
        digests = {one.digest if isinstance(one, Start) else one for one in agreed}
        self._change(lambda known: known | digests)

    def remove(self, digests: Iterable[str]) -> int:
        """Removes these digests; returns how many of them were stored."""
        return -self._change(lambda known: known.difference(digests))

    def _change(self, change: Callable[[frozenset[str]], frozenset[str]]) -> int:
        with self.file.locked():
            before = self.known()
            after = change(before)
            if after != before:
                self.file.replace(json.dumps(sorted(after), indent=1).encode())
            return len(after) - len(before)


def belief_digest(server: ServerConfig, *, yes: bool = True) -> str:
    """Returns the SHA-256 of a person's answer to whether a server's read-only marks are trusted."""
    return digest(["reads", yes, server_identity(server)])


_MARKING = ("stdio", "http", "sse", "openapi")
"""How servers and specifications are reached that mark tools as read-only."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A server, or a part of a specification, with the names of the tools that would be harmless if it is trusted."""

    server: ServerConfig
    tools: tuple[str, ...]


def believable(catalog: Catalog, connections: Mapping[str, object]) -> dict[str, Marked]:
    """Returns the servers and specifications that mark tools as read-only, by agent."""
    marked: dict[str, Marked] = {}
    for agent in catalog.agents:
        server = connections.get(agent.id)
        if not isinstance(server, ServerConfig) or server.transport not in _MARKING:
            continue
        tools = [tool.name for tool in agent.tools if harm_of(tool, trusted=True) == "none"]
        if tools:
            marked[agent.id] = Marked(server, tuple(tools))
    return marked


def with_trust(servers: Mapping[str, ServerConfig]) -> dict[str, ServerConfig]:
    """Returns the servers; those that a person trusts are changed as if their entries had ``"trusted": true``."""
    known = Agreements().known()
    return {
        name: server.model_copy(update={"callsheet": server.callsheet.model_copy(update={"trusted": True})})
        if server.transport in _MARKING and belief_digest(server) in known
        else server
        for name, server in servers.items()
    }


def _start(name: str, server: ServerConfig) -> Start:
    if server.documents:
        return Start(name, f"reads the documents in {server.documents}", "", (), (), _FOLDERS)
    folder = ""
    given = given_by(server)
    line = " for ".join(filter(None, (server.openapi, server.url)))
    if server.command and not server.openapi:
        line = shlex.join((server.command, *server.args))
        folder = server.cwd if server.cwd and "${" in server.cwd else str(Path(server.cwd or os.curdir).absolute())
    does = _TOOLKITS if server.transport == "toolkit" else _SPECIFICATIONS if server.openapi else _COMMANDS
    names = tuple(map(str, given))
    covered = tuple(one.covered for one in given)
    return Start(name, line, folder, names, _grants(server), does, covered)


def _grants(server: ServerConfig) -> tuple[str, ...]:
    own = server.callsheet
    grants = {
        "what it says of its tools is believed": own.trusted,
        "its tools are called without asking": own.approval == "never",
        f"called without asking: {', '.join(own.allow)}": own.allow,
        f"known to only read: {', '.join(own.reads)}": own.reads,
    }
    return tuple(filter(grants.get, grants))


def _is_risky(server: ServerConfig) -> bool:
    return bool(_grants(server)) or any("${" in text for text in (server.url or "", *server.headers.values()))


def _lines(starts: Sequence[Start]) -> str:
    return "\n".join(f"  {start}" for start in starts)


_LOG = logging.getLogger("callsheet")


class StandingApproval(Record):
    """A tool whose calls one user has approved permanently.

    Attributes:
        digest: SHA-256 of the tool's definition, and of how its server was reached, when it was approved.
        since: The time of the approval, UTC, ISO 8601.
        user: Id of the user; empty for the user of this machine, None for clients of a server without authentication.
    """

    agent: str
    tool: str
    digest: str
    since: str
    user: str | None = ""

    @property
    def id(self) -> str:
        """Returns the id of the tool, ``agent/tool``."""
        return f"{self.agent}/{self.tool}"


class _File(Record):
    allowed: tuple[StandingApproval, ...]
    callsheet_standing: Literal[1] = 1


@dataclass(frozen=True)
class StandingApprovals:
    """The permanent approvals of one user in one catalog; each method reads the file again."""

    label: str
    user: str | None = ""

    @classmethod
    def of(cls, label: str, user: str | None = "") -> StandingApprovals | None:
        """Returns the approvals for a catalog; None for a catalog in memory. No file is read yet."""
        return cls(label, user) if label else None

    @cached_property
    def file(self) -> StoredFile:
        """Returns the file of the approvals, in the shared store or else in the user's data folder."""
        return state_file(f"allowed/{catalog_key(self.label)}.json")

    def entries(self) -> tuple[StandingApproval, ...]:
        """Returns the approvals of all users, in the order in which they were given.

        Raises a ``TrustError`` if the file cannot be read.
        """
        try:
            return _File(**json.loads(self.file.text())).allowed
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise TrustError(f"the allowed tools in {self.file} cannot be read, so none is allowed: {error}") from error

    def own(self) -> list[StandingApproval]:
        """Returns the approvals of the user; raises as ``entries`` does."""
        return [one for one in self.entries() if one.user == self.user]

    def holds(self, tool_id: str, digest: str) -> bool:
        """Returns whether the user has approved the tool with its present definition.

        If the file cannot be read, the answer is no, and the error is logged.
        """
        try:
            return any((one.id, one.digest) == (tool_id, digest) for one in self.own())
        except TrustError as error:
            _LOG.warning("%s", error)
            return False

    def add(self, tool: Tool, digest: str) -> None:
        """Approves a tool permanently, and replaces the approval of an earlier definition.

        Raises a ``TrustError`` if the file cannot be changed.
        """
        since = datetime.now(UTC).isoformat(timespec="seconds")
        new = StandingApproval(agent=tool.agent, tool=tool.name, digest=digest, since=since, user=self.user)
        self._change(lambda entries: [*(one for one in entries if (one.id, one.user) != (new.id, new.user)), new])

    def revoke(self, tool_ids: Collection[str], *, everybody: bool = False) -> int:
        """Revokes the user's approvals of these tools, or those of everybody; returns their number.

        Raises as ``add`` does.
        """

        def left(entries: Sequence[StandingApproval]) -> list[StandingApproval]:
            return [one for one in entries if one.id not in tool_ids or not (everybody or one.user == self.user)]

        return -self._change(left)

    def _change(self, change: Callable[[Sequence[StandingApproval]], Sequence[StandingApproval]]) -> int:
        """Replaces the entries; returns how many there are more."""
        with self.file.locked():
            before = self.entries()
            after = change(before)
            if [*before] != [*after]:
                self.file.replace(json.dumps(_File(allowed=tuple(after)).model_dump(), indent=1).encode("ascii"))
            return len(after) - len(before)
