"""Reads files whose names come from outside, without waiting for a pipe or a device."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path, *, most: int = -1) -> bytes:
    """Returns the content of a regular file, or its first ``most`` bytes.

    Raises an ``OSError`` if the file cannot be read, or if it is a pipe, a socket or a device, from which reading might
    never end.
    """
    # Without O_NONBLOCK, opening a pipe waits until somebody writes to it.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read(most)
