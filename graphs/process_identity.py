"""Identifies a process that holds something which outlives it, and checks whether it still runs."""

from __future__ import annotations

import os
import socket
import sys
from functools import cache
from pathlib import Path

from callsheet.graphs.catalog.model import Record


class ProcessIdentity(Record):
    """Identifies a process on a machine.

    Attributes:
        host: Name of the machine, for people.
        machine: An identifier within which process numbers are unique; machines and containers may share a name.
        process: The process number, which the system may reuse.
        born: The time when the process was started, as the system reports it; else empty.
    """

    host: str
    machine: str
    process: int
    born: str

    @classmethod
    def here(cls) -> ProcessIdentity:
        """Returns the identity of this process; reads files of the system."""
        process = os.getpid()
        return cls(host=socket.gethostname(), machine=machine(), process=process, born=born(process))

    @property
    def runs(self) -> bool | None:
        """Returns whether the process still runs; None if that cannot be checked on this machine."""
        if self == ProcessIdentity.here():
            return True
        if self.machine != machine() or sys.platform == "win32":
            return None
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # it exists, and belongs to another user
        return born(self.process) == self.born


def machine() -> str:
    """Returns an identifier of this machine or container, within which process numbers are unique."""
    return f"{socket.gethostname()}{_boot()}"


@cache
def _boot() -> str:
    """Returns what tells apart machines and containers of one name; empty if the system does not say it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f" {boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def born(process: int) -> str:
    """Returns the time when a process was started, as text; empty if the system does not report it."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return told[19] if told[0] != "Z" else "ended"
