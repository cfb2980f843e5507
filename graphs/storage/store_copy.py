"""Copies of the files of a store: from a folder to a database, back, or between two of a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.storage.database import Database
from callsheet.graphs.storage.database_address import is_address
from callsheet.graphs.storage.local_files import cache_folder, state_folder
from callsheet.graphs.storage.stored_file import DatabaseFile, LocalFile, StoredFile

LOCAL = "local"
"""Names the folders of this user."""
_STATE = ("*.json", "pins/*.json")
_CACHE = ("listings/*.json",)


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did.

    Attributes:
        names: The files that were written.
        kept: The files that the target already had with another content, and still has.
    """

    names: tuple[str, ...]
    kept: tuple[str, ...]


def copy_files(source: str, target: str) -> Copied:
    """Copies pins, consents, listings, observations and outcomes; overwrites nothing.

    Each file keeps its age, so that a listing is not taken for a new one.

    Args:
        source: ``local``, a folder that was a ``CALLSHEET_HOME``, or the address of a database.
        target: The same; a new folder is created.

    Raises:
        SettingsError: The source does not exist, or an address is invalid.
        OSError: A file cannot be read or written.
    """
    found, made = _files(source), _maker(target)
    written, kept = [], []
    for name, file in found.items():
        content, there = file.read(), made(name)
        with there.locked():
            try:
                before = there.read()
            except FileNotFoundError:
                there.replace(content, modified=file.modified())
                written.append(name)
            else:
                if before != content:
                    kept.append(name)
    return Copied(tuple(written), tuple(kept))


def _files(place: str) -> Mapping[str, StoredFile]:
    if is_address(place):
        database = Database(place, create=False)
        with database.transaction() as connection:
            rows = connection.execute("SELECT name FROM files ORDER BY name").fetchall()
        return {name: DatabaseFile(database, name) for (name,) in rows}
    folders = _folders(place)
    if not any(folder.is_dir() for folder in folders):
        raise SettingsError(f"no store at {place}: name a folder, {LOCAL}, or postgresql://...")
    return {
        path.relative_to(folder).as_posix(): LocalFile(path)
        for folder, patterns in zip(folders, (_STATE, _CACHE), strict=True)
        for pattern in patterns
        for path in sorted(folder.glob(pattern))
    }


def _maker(place: str) -> Callable[[str], StoredFile]:
    if is_address(place):
        database = Database(place)
        return lambda name: DatabaseFile(database, name)
    state, cache = _folders(place)
    return lambda name: LocalFile((cache if name.startswith("listings/") else state) / name)


def _folders(place: str) -> tuple[Path, Path]:
    """The folders of the files that must not be lost, and of those that can be rebuilt."""
    return (state_folder(), cache_folder()) if place == LOCAL else (Path(place).expanduser(), Path(place).expanduser())
