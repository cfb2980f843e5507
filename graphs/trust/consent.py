"""No process of a configuration is started, and no folder read, before it was shown and agreed to."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from callsheet.graphs.catalog.errors import TrustError
from callsheet.graphs.catalog.formats.document_folders import FolderConfig
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.storage import locked, replace_text, said_yes, state_folder
from callsheet.graphs.text.sanitizing import one_line

# Their values decide which program, or which code inside it, is run; they are shown, and agreed to with the command.
_DECISIVE = frozenset(
    "PATH LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH PYTHONPATH PYTHONHOME PYTHONSTARTUP "
    "NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT RUBYLIB RUBYOPT JAVA_TOOL_OPTIONS BASH_ENV ENV GIT_SSH_COMMAND "
    "UV_INDEX UV_INDEX_URL UV_DEFAULT_INDEX PIP_INDEX_URL NPM_CONFIG_REGISTRY".split()
)


@dataclass(frozen=True, slots=True)
class Start:
    """What loading a configuration would do for one server.

    Attributes:
        agent: The server's name.
        line: Its command as a shell would be given it, its address, or that a folder of documents is read; variables
            unexpanded.
        folder: Where the command is run; empty for an address.
        names: Names of the environment variables or headers that it is given; values are never shown, but for those
            that decide what is run, such as ``PYTHONPATH``.
        grants: What the configuration lets the server do beyond that, in words.
        digest: SHA-256 of all that; what is remembered.
        reads: Whether it is a folder of documents.
    """

    agent: str
    line: str
    folder: str
    names: tuple[str, ...]
    grants: tuple[str, ...]
    digest: str
    reads: bool = False

    def __str__(self) -> str:
        """One line for a person, with hidden characters written out."""
        where = f"  (in {self.folder})" if self.folder else ""
        given = f"  with {', '.join(self.names)}" if self.names else ""
        granted = "".join(f"; {words}" for words in self.grants)
        return one_line(f"{self.agent}: {self.line}{where}{given}{granted}")


def starts_of(
    servers: Mapping[str, ServerConfig], folders: Mapping[str, FolderConfig] | None = None
) -> tuple[Start, ...]:
    """What has to be agreed to before these servers are reached, and these folders of documents read.

    Every process; an address that variables of the environment would be sent to; a server that is granted more; every
    folder, which may lie anywhere.
    """
    reached = (server for server in servers.items() if server[1].command or _sends(server[1]) or _grants(server[1]))
    return (*(_start(*server) for server in reached), *(_reading(*folder) for folder in (folders or {}).items()))


def check_agreed(
    servers: Mapping[str, ServerConfig],
    where: str,
    *,
    yes: bool = False,
    commands: Sequence[str] | None = None,
    folders: Mapping[str, FolderConfig] | None = None,
) -> frozenset[str]:
    """Returns if every command that these servers need may be run, and every folder of documents read.

    Args:
        servers: By name.
        where: The file they come from, for the message.
        yes: Agrees to all of them; so does ``CALLSHEET_YES``.
        commands: Patterns of commands that may be run at all, whoever agrees (``Policy.commands``); None for any.
        folders: By the names of their agents.

    Returns:
        Names of the servers whose present command a person has agreed to.

    Raises:
        TrustError: A command was not agreed to, or may not be run; the message shows each.
    """
    starts = starts_of(servers, folders)
    if barred := [start for start in starts if start.folder and not _allowed(start, commands)]:
        raise TrustError(f"{where} would start what the policy's commands do not allow:\n{_listed(barred)}")
    known = Agreements().known()
    new = [start for start in starts if start.digest not in known]
    if new and not (yes or said_yes()):
        raise TrustError(
            f"{where} would {doing(new)}:\n{_listed(new)}\n"
            "agree to them with --yes, or once for all with `callsheet index --catalog ...` in a terminal; "
            "in Python with yes=True, elsewhere with CALLSHEET_YES=1"
        )
    return frozenset(start.agent for start in starts if start.digest in known)


def doing(starts: Collection[Start]) -> str:
    """What they do, in words that a list of them follows."""
    words = {"read these folders" if start.reads else "start these commands" for start in starts}
    return " and ".join(sorted(words, reverse=True))


class Agreements:
    """The commands that a person has agreed to, as digests in one file.

    Args:
        file: ``agreed.json`` in the user's data folder by default.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or state_folder() / "agreed.json"

    def known(self) -> frozenset[str]:
        """The digests; none where the file is missing or cannot be read, so that a person is asked again."""
        try:
            content = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return frozenset()
        return frozenset(map(str, content)) if isinstance(content, list) else frozenset()

    def add(self, starts: Collection[Start]) -> None:
        """Remembers these.

        Raises:
            TrustError: The file cannot be written.
        """
        with locked(self.file):
            digests = self.known() | {start.digest for start in starts}
            replace_text(self.file, json.dumps(sorted(digests), indent=1))


def _start(name: str, server: ServerConfig) -> Start:
    if not server.command:
        line, folder, given = server.url or "", "", dict(server.headers)
    else:
        line, given = shlex.join((server.command, *server.args)), server.env
        folder = server.cwd if server.cwd and "${" in server.cwd else str(Path(server.cwd or os.curdir).absolute())
    names = tuple(f"{key}={given[key]}" if key.upper() in _DECISIVE else key for key in sorted(given))
    grants = _grants(server)
    digest = hashlib.sha256(json.dumps([line, folder, names, grants]).encode()).hexdigest()
    return Start(name, line, folder, names, grants, digest)


def _reading(name: str, folder: FolderConfig) -> Start:
    line = f"reads the documents in {folder.documents}"
    digest = hashlib.sha256(json.dumps(["documents", str(folder.documents)]).encode()).hexdigest()
    return Start(name, line, "", (), (), digest, reads=True)


def _grants(server: ServerConfig) -> tuple[str, ...]:
    believed = ("what it says of its tools is believed",) if server.callsheet.trusted else ()
    unasked = ("its tools are called without asking",) if server.callsheet.approval == "never" else ()
    return (*believed, *unasked)


def _sends(server: ServerConfig) -> bool:
    return any("${" in text for text in (server.url or "", *server.headers.values()))


def _allowed(start: Start, commands: Sequence[str] | None) -> bool:
    return commands is None or any(fnmatchcase(start.line, pattern) for pattern in commands)


def _listed(starts: Sequence[Start]) -> str:
    return "\n".join(f"  {start}" for start in starts)
