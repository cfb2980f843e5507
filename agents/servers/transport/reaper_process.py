"""Ends the servers of a process that died before it could; run by path, standard library only.

Standard input is a socket whose other end the owner holds. It writes a line for each server:
``+PGID`` when one was started, with the owner's end of that server's standard input; ``=PGID`` when
that end is to be closed; ``-PGID`` when the server is gone. The end of input, or another parent, means that the
owner is gone, killed with -9 perhaps. Then all that it had started is ended: the groups it wrote
of, every process that carries its mark in the environment, which a child keeps that has left the
group of its server, and one that was started in the owner's very last moment, and every process
that was seen, once a second, to descend from a server, whatever it did with group and environment.
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
"""The environment variable by which the processes of a server are known."""
_LOOK, _LEAVE, _POLL = 1.0, 1.0, 0.02
_PROC = Path("/proc")


def marked(mark: str) -> list[int]:
    """Process ids of those whose mark begins with this one, those that are dead and not yet buried left out."""
    wanted = f"{MARK}={mark}"
    found = _in_proc(wanted.encode()) if _PROC.is_dir() else _in_listing(wanted)
    return [pid for pid in found if pid != os.getpid()]


def _in_proc(wanted: bytes) -> list[int]:
    found = []
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            # Of another user, or gone by now.
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
    """Those of these processes that are alive, and all that descend from them now.

    Args:
        family: Process ids, each with when it was started, by which an id that was given anew is known; "" for any.
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
    """Signals these processes and all that descend from them; says whether there was any."""
    found = grown(family)
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return bool(found)


def _running() -> dict[int, tuple[int, str]]:
    """Every process with its parent and when it was started, those that are dead and not yet buried left out."""
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
    """Signals every process with this mark; says whether there was any."""
    found = marked(mark)
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return bool(found)


def end_all(groups: set[int], mark: str, family: Mapping[int, str] | None = None) -> None:
    """Ends these groups, every process with this mark, and a family: a moment to leave, SIGTERM, SIGKILL."""
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
    """Signals these process groups; says whether any of them is left."""
    left = False
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
            left = True
    return left


class _Servers:
    """What the owner has told of its servers: their groups, and our copies of their standard input."""

    def __init__(self) -> None:
        self.groups, self._inputs, self._rest = set[int](), dict[int, int](), b""

    def take(self, data: bytes, descriptors: list[int]) -> None:
        """Reads what the owner wrote; a read ends with the line that a descriptor came with."""
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
    """Reads what the owner writes until it is gone; the groups that it left behind, and their families.

    Args:
        owner: Its process id, as it says itself: it may be gone before this process has come to ask who that is.
    """
    servers, family, channel = _Servers(), dict[int, str](), socket.socket(fileno=0)
    while True:
        ready, _, _ = select.select([channel], [], [], _LOOK)
        # When the owner is gone its servers still have their input, from here: none has ended for want of it.
        if servers.groups or family:
            family = grown({**dict.fromkeys(servers.groups, ""), **family})
        if not ready:
            # Somebody forked by the owner may still hold the other end.
            if os.getppid() != owner:
                return servers.groups, family
            continue
        data, descriptors, _, _ = socket.recv_fds(channel, 65_536, 1)
        if not data:
            return servers.groups, family
        servers.take(data, descriptors)


if __name__ == "__main__":
    left_behind, descended = wait_for_owner(int(sys.argv[2]))
    end_all(left_behind, sys.argv[1], descended)
