"""Ends the servers of a process that died; run by path, with the standard library only.

Standard input is a socket to the owner. The owner writes a line per server: ``+PGID`` when it was started, with the
owner's end of its standard input; ``=PGID`` to close that end; ``-PGID`` when it has ended. End of input, or another
parent process, means that the owner is gone, perhaps killed with -9. Then this process ends: the registered process
groups; every process with the owner's mark in its environment, which children keep that left their group, and which a
server of the owner's last moment has too; and every process that was seen, once a second, as a descendant of a server.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

MARK = "CALLSHEET_SESSION"
"""Environment variable that marks the processes of a server."""
_LOOK, _LEAVE, _POLL = 1.0, 1.0, 0.02
_PROC = Path("/proc")


def marked(mark: str) -> list[int]:
    """Ids of processes whose mark begins with this one, without zombies."""
    wanted = f"{MARK}={mark}"
    found = _in_proc(wanted.encode()) if _PROC.is_dir() else _in_listing(wanted)
    return [pid for pid in found if pid != os.getpid()]


def _in_proc(wanted: bytes) -> list[int]:
    found = []
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            # Another user's process, or one that has ended.
            with suppress(OSError):
                environment = (folder / "environ").read_bytes()
                if environment.startswith(wanted) or b"\0" + wanted in environment:
                    found.append(int(folder.name))
    return found


def _in_listing(wanted: str) -> list[int]:
    command = ["/bin/ps", "-E", "-A", "-ww", "-o", "pid=,command="]
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(command, capture_output=True, timeout=5, check=False)  # noqa: S603
        lines = listed.stdout.decode("utf-8", "replace").splitlines()
        return [int(line.split(None, 1)[0]) for line in lines if f" {wanted}" in line]
    return []


def grown(family: Mapping[int, str]) -> dict[int, str]:
    """The living processes among these, with all their current descendants.

    Args:
        family: Process ids with their start times, to detect reused ids; an empty time matches any.
    """
    running = _running()
    found = {pid: running[pid][1] for pid, began in family.items() if pid in running and began in ("", running[pid][1])}
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in running.items():
        children.setdefault(parent, []).append(pid)
    todo = list(found)
    while todo:
        new = [pid for pid in children.get(todo.pop(), ()) if pid not in found]
        found.update((pid, running[pid][1]) for pid in new)
        todo += new
    return found


def end_family(family: Mapping[int, str], number: int) -> bool:
    """Signals these processes and all their descendants; returns whether there were any."""
    found = grown(family)
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return bool(found)


def _running() -> dict[int, tuple[int, str]]:
    """Every process with its parent and start time, without zombies."""
    return _stats() if _PROC.is_dir() else _listed()


def _stats() -> dict[int, tuple[int, str]]:
    found = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                state, parent, *rest = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                if state not in "ZX":
                    found[int(folder.name)] = int(parent), rest[17]
    return found


def _listed() -> dict[int, tuple[int, str]]:
    command = ["/bin/ps", "-A", "-o", "pid=,ppid=,lstart="]
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(command, capture_output=True, timeout=5, check=False)  # noqa: S603
        rows = (line.split(None, 2) for line in listed.stdout.decode("utf-8", "replace").splitlines())
        return {int(pid): (int(parent), began) for pid, parent, began in rows}
    return {}


def end_marked(mark: str, number: int = signal.SIGTERM) -> bool:
    """Signals every process with this mark; returns whether there were any."""
    found = marked(mark)
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return bool(found)


def end_all(groups: set[int], mark: str, family: Mapping[int, str] | None = None) -> None:
    """Ends these groups, every process with this mark, and a family: waits briefly, then SIGTERM, then SIGKILL."""
    family = family or {}
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        family = grown(family)
        left = [end_groups(groups, number), end_marked(mark, number), end_family(family, number)]
        if not any(left):
            return
        deadline = time.monotonic() + _LEAVE
        while (end_groups(groups, 0) or marked(mark) or grown(family)) and time.monotonic() < deadline:
            time.sleep(_POLL)


def end_groups(groups: set[int], number: int) -> bool:
    """Signals these process groups; returns whether any is left."""
    left = False
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
            left = True
    return left


class _Servers:
    """The owner's servers: their process groups, and our copies of their standard input."""

    def __init__(self) -> None:
        self.groups, self._inputs, self._rest = set[int](), dict[int, int](), b""

    def take(self, data: bytes, descriptors: list[int]) -> None:
        """Parses what the owner wrote; a descriptor belongs to the last line of its read."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for number, line in enumerate(lines, 1):
            kind, group = line[:1], int(line[1:])
            if kind == b"+":
                self.groups.add(group)
                if descriptors and number == len(lines):
                    self._inputs[group] = descriptors[0]
                continue
            if group in self._inputs:
                os.close(self._inputs.pop(group))
            if kind == b"-":
                self.groups.discard(group)


def wait_for_owner(owner: int) -> tuple[set[int], dict[int, str]]:
    """Reads from the owner until it is gone; returns the remaining groups, and their families.

    Args:
        owner: Its process id, given by itself, because it may be gone before this process can look up its parent.
    """
    servers, family, channel = _Servers(), dict[int, str](), socket.socket(fileno=0)
    looked = time.monotonic()
    while True:
        ready, _, _ = select.select([channel], [], [], max(0.0, looked + _LOOK - time.monotonic()))
        data, descriptors = socket.recv_fds(channel, 65_536, 1)[:2] if ready else (b"", [])
        # A process forked by the owner may still hold the other end.
        gone = not data if ready else os.getppid() != owner
        # After the owner's end its servers still have their input, through this process.
        if gone or time.monotonic() - looked >= _LOOK:
            family = grown({**dict.fromkeys(servers.groups, ""), **family}) if servers.groups or family else {}
            looked = time.monotonic()
        if gone:
            return servers.groups, family
        servers.take(data, descriptors)


if __name__ == "__main__":
    left_behind, descended = wait_for_owner(int(sys.argv[2]))
    end_all(left_behind, sys.argv[1], descended)
