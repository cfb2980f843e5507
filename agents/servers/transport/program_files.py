"""Watches the files of a server's program, so that a running server is restarted if one of them was edited."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from callsheet.graphs.catalog.formats.server_config import ServerConfig

Stamps = frozenset[tuple[str, int, int]]
"""For each file: its path, the time of its last change in nanoseconds, and its size."""
_MOST_BESIDE = 500
_CODE = frozenset(
    ".py .pyz .whl .js .mjs .cjs .ts .mts .cts .tsx .jar .rb .sh .bash .pl .php .lua .exe .dll .wasm".split()
)
"""Suffixes of programs. Other files among the words of a command, such as a database, change while its server works."""


def stamps_of(server: ServerConfig, program: str) -> Stamps:
    """Returns the stamps of the files that a command names, and of the modules beside its scripts.

    ``program`` is the path of the command's program. A module (``python -m package.server``) counts if it is below the
    working folder.
    """
    folder = Path(server.cwd or ".")
    stamps: set[tuple[str, int, int]] = set()
    for path in (Path(program), *_named(server, folder)):
        for file in (path, *_beside(path)):
            with suppress(OSError):
                about = file.stat()
                stamps.add((str(file), about.st_mtime_ns, about.st_size))
    return frozenset(stamps)


def _named(server: ServerConfig, folder: Path) -> Iterator[Path]:
    """Yields the files that a command names, also behind ``--option=`` and in a folder that it names before."""
    folders = [folder]
    for before, word in zip(("", *server.args), server.args, strict=False):
        value = word.rpartition("=")[2] if word.startswith("-") else word
        is_module = before == "-m"
        names = _module_files(value) if is_module else [Path(value)]
        for path in [place / name for place in folders for name in names]:
            with suppress(OSError, ValueError):  # an argument may be anything
                if path.is_file():
                    if _is_program(path):
                        yield path
                elif path.is_dir() and not is_module:
                    folders.append(path)


def _module_files(module: str) -> list[Path]:
    """Returns the files that may be the program of a Python module."""
    path = module.replace(".", "/")
    return [Path(f"{path}.py"), Path(path, "__main__.py"), Path(path, "__init__.py")]


def _is_program(file: Path) -> bool:
    """Returns whether a file is a program by its suffix, or has none and can be executed."""
    return file.suffix in _CODE or (not file.suffix and os.access(file, os.X_OK))


def _beside(script: Path) -> Iterator[Path]:
    """Yields the files in the folder of a script that have its suffix; none for a program without one."""
    if script.suffix not in _CODE:
        return
    with suppress(OSError):
        yield from islice((file for file in script.parent.iterdir() if file.suffix == script.suffix), _MOST_BESIDE)
