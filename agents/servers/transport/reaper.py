"""Ends all servers when this process ends, even if it is killed with -9."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from itertools import count
from pathlib import Path

from callsheet.agents.servers.transport import reaper_process

_SCRIPT = Path(reaper_process.__file__)
_GOODBYE = 6.0


class Reaper:
    """A small process that ends the servers of this process when it is gone; started with the first server.

    It has its own process session, so that Ctrl-C in the terminal does not reach it.

    Raises:
        OSError: The process cannot be started.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._groups: set[int] = set()
        self._owner = 0
        self._name = ""

    def mark(self) -> str:
        """A new mark for one server; starts the reaper if it is not running, which takes a few milliseconds."""
        with self._lock:
            if self._owner != os.getpid():
                self._begin()
            if self._process is None or self._process.poll() is not None:
                self._start()
            return f"{self._name}.{next(self._numbers)}."

    def watch(self, group: int, stdin: int | None = None) -> None:
        """Registers the process group of a server.

        Args:
            group: Id of the process group.
            stdin: Our end of its standard input. The reaper keeps it open too, so that a server that ends with its
                input outlives this process until the reaper has recorded its descendants.
        """
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}", *([] if stdin is None else [stdin]))

    def release(self, group: int) -> None:
        """Closes the reaper's copy of a server's standard input, so that closing ours ends the server."""
        with self._lock:
            self._tell(f"={group}")

    def forget(self, group: int) -> None:
        """Removes a process group that has ended."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}")

    def close(self) -> None:
        """Stops the reaper; it ends the servers that are left."""
        with self._lock:
            process, self._process = self._process, None
            self._hang_up()
        if process is not None and self._owner == os.getpid():
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GOODBYE)

    def _begin(self) -> None:
        """Resets the state: a forked process inherits this object, but not the servers."""
        self._hang_up()
        self._owner, self._name, self._groups, self._process = os.getpid(), uuid.uuid4().hex, set(), None

    def _hang_up(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._channel = None

    def _start(self) -> None:
        self._hang_up()
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 (our own script)
                [sys.executable, "-I", "-S", str(_SCRIPT), self._name, str(os.getpid())],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={},
            )
        for group in self._groups:
            self._tell(f"+{group}")

    def _tell(self, line: str, *descriptors: int) -> None:
        if self._channel is not None:
            # The reaper was killed: servers still have their marks, and the next server starts a new reaper.
            with suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(self._channel, [f"{line}\n".encode()], descriptors)


REAPER = Reaper()
"""The reaper of this process."""
