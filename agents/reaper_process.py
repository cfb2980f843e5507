"""Ends the servers of a process that died before it could; run by path, standard library only.

The owner holds the other end of standard input and writes a line for each server: ``+PGID`` when
one was started, ``-PGID`` when it is gone. The end of input, or another parent, means that the
owner is gone, killed with -9 perhaps. Then all that it had started is ended: the groups it wrote
of, and every process that carries its mark in the environment, which a child keeps that has left
the group of its server, and one that was started in the owner's very last moment.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
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


def end_marked(mark: str, number: int = signal.SIGTERM) -> bool:
    """Signals every process with this mark; says whether there was any."""
    found = marked(mark)
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return bool(found)


def end_all(groups: set[int], mark: str) -> None:
    """Ends these process groups and every process with this mark: a moment to leave, SIGTERM, SIGKILL."""
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        left = end_groups(groups, number)
        if not end_marked(mark, number) and not left:
            return
        deadline = time.monotonic() + _LEAVE
        while (end_groups(groups, 0) or marked(mark)) and time.monotonic() < deadline:
            time.sleep(_POLL)


def end_groups(groups: set[int], number: int) -> bool:
    """Signals these process groups; says whether any of them is left."""
    left = False
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
            left = True
    return left


def wait_for_owner() -> set[int]:
    """Reads what the owner writes until it is gone; the groups that it left behind."""
    owner, groups, rest = os.getppid(), set[int](), b""
    while True:
        ready, _, _ = select.select([0], [], [], _LOOK)
        if not ready:
            # Somebody forked by the owner may still hold the pipe.
            if os.getppid() != owner:
                return groups
            continue
        if not (read := os.read(0, 65_536)):
            return groups
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            (groups.add if line.startswith(b"+") else groups.discard)(int(line[1:]))


if __name__ == "__main__":
    end_all(wait_for_owner(), sys.argv[1])
