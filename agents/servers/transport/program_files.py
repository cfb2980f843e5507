"""The files of a server's program: a server that keeps running is started anew if one of them was edited."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from callsheet.graphs.catalog.formats.server_config import ServerConfig

Stamps = frozenset[tuple[str, int, int]]
"""Path, time of the last change in nanoseconds, and size of each file."""
_MOST_BESIDE = 500
_CODE = frozenset(
    ".py .pyz .whl .js .mjs .cjs .ts .mts .cts .tsx .jar .rb .sh .bash .pl .php .lua .exe .dll .wasm".split()
)
"""Suffixes of programs. Other files among the words of a command, such as a database, change while its server works."""


def stamps_of(server: ServerConfig, program: str) -> Stamps:
    """Returns the stamps of the files that a command names, and of files like each script in its folder: its modules.

    ``program`` is the path of the command's program. A module (``python -m package.server``) counts if it is below the
    working folder.
    """
    folder = Path(server.cwd or ".")
    found = set[tuple[str, int, int]]()
    for path in (Path(program), *_named(server, folder)):
        for file in (path, *_beside(path)):
            with suppress(OSError):
                about = file.stat()
                found.add((str(file), about.st_mtime_ns, about.st_size))
    return frozenset(found)


def _named(server: ServerConfig, folder: Path) -> Iterator[Path]:
    """Yields the files that a command names, also behind ``--option=`` and in a folder that it names before."""
    folders = [folder]
    for before, word in zip(("", *server.args), server.args, strict=False):
        written = word.rpartition("=")[2] if word.startswith("-") else word
        if before == "-m":
            module = "/".join(written.split("."))
            names = [Path(f"{module}.py"), Path(module, "__main__.py"), Path(module, "__init__.py")]
        else:
            names = [Path(written)]
        for path in [place / name for place in folders for name in names]:
            with suppress(OSError, ValueError):  # an argument may be anything
                if path.is_file():
                    if path.suffix in _CODE or (not path.suffix and os.access(path, os.X_OK)):
                        yield path
                elif path.is_dir() and before != "-m":
                    folders.append(path)


def _beside(script: Path) -> Iterator[Path]:
    """Yields the files in the folder of a script that have its suffix; none for a program without one."""
    if script.suffix not in _CODE:
        return
    with suppress(OSError):
        yield from islice((file for file in script.parent.iterdir() if file.suffix == script.suffix), _MOST_BESIDE)
