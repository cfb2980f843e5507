"""The processes that a server has started, also those that left its process group."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_LISTING = ("/bin/ps", "-E", "-A", "-ww", "-o", "pid=,ppid=,pgid=,state=,lstart=,command=")


class Process(NamedTuple):
    """A process: its parent, its group, when it began, and whether it has a mark in its environment."""

    parent: int
    group: int
    began: str
    marked: bool


def family(leader: int, mark: str, known: Mapping[int, Process]) -> dict[int, Process]:
    """The living processes of a server, by id; empty where processes cannot be listed.

    Args:
        leader: The first process of its group. All in the group belong to the family, and all descendants.
        mark: Variable with value in the environment of those that belong to it too.
        known: Members so far. One with another start is not of the family: its id was given anew.
    """
    running = _running(mark)
    members = {
        pid
        for pid, process in running.items()
        if leader in (pid, process.group) or process.marked or (pid in known and known[pid].began == process.began)
    }
    while more := {pid for pid, process in running.items() if process.parent in members} - members:
        members |= more
    return {pid: running[pid] for pid in members}


def signal_family(leader: int, members: Mapping[int, Process], number: int) -> None:
    """Signals the group of a server at once, and the members that left it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    for pid, process in members.items():
        if process.group != leader:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def _running(mark: str) -> dict[int, Process]:
    """Every process of this machine that has not ended."""
    running = {}
    for folder in _PROC.iterdir() if _PROC.is_dir() else ():
        with suppress(OSError, ValueError):
            pid = int(folder.name)
            state, parent, group, *rest = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if state not in "ZX":
                running[pid] = Process(int(parent), int(group), rest[16], mark in _environment(folder))
    return running or _listed(mark)


def _environment(folder: Path) -> str:
    try:
        return (folder / "environ").read_text("utf-8", "replace")
    except OSError:  # of another user
        return ""


def _listed(mark: str) -> dict[int, Process]:
    running = {}
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(_LISTING, capture_output=True, timeout=5, check=False).stdout  # noqa: S603
        for line in listed.decode("utf-8", "replace").splitlines():
            pid, parent, group, state, *rest = line.split()
            if state[0] != "Z":
                running[int(pid)] = Process(int(parent), int(group), " ".join(rest[:5]), mark in rest)
    return running
