"""What sees to it that no server outlives this process, even when it is killed with -9."""

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
from callsheet.agents.servers.transport.reaper_process import MARK

__all__ = ["MARK", "REAPER", "Reaper"]

_SCRIPT = Path(reaper_process.__file__)
_GOODBYE = 6.0


class Reaper:
    """A small process beside this one that ends its servers when it is gone; started with the first of them.

    It leads a session of its own, so that a Ctrl-C in the terminal does not reach it.

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
        """A new mark for one server, with the process running that looks after it; it blocks for a few milliseconds."""
        with self._lock:
            if self._owner != os.getpid():
                self._begin()
            if self._process is None or self._process.poll() is not None:
                self._start()
            return f"{self._name}.{next(self._numbers)}."

    def watch(self, group: int, stdin: int | None = None) -> None:
        """A server leads this process group from now on.

        Args:
            group: The id of the group.
            stdin: Our end of its standard input. The reaper holds it open too: a server that ends with its input
                outlives this process until the reaper has seen what descends from it.
        """
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}", *([] if stdin is None else [stdin]))

    def release(self, group: int) -> None:
        """The reaper lets go of this server's standard input, so that closing ours ends it."""
        with self._lock:
            self._tell(f"={group}")

    def forget(self, group: int) -> None:
        """This process group is gone."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}")

    def close(self) -> None:
        """Lets the process go; what is still there of the servers ends with it."""
        with self._lock:
            process, self._process = self._process, None
            self._hang_up()
        if process is not None and self._owner == os.getpid():
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GOODBYE)

    def _begin(self) -> None:
        """Starts afresh: a forked child has its parent's object, but not its servers."""
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
            # Killed by somebody: the marks still tell its servers, and the next one starts a new reaper.
            with suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(self._channel, [f"{line}\n".encode()], descriptors)


REAPER = Reaper()
"""That of this process."""
