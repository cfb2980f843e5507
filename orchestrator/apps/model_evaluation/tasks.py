"""Tasks with end states: what is asked, and how it is known that it was done."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import httpx
import jmespath
from pydantic import Field, model_validator

from callsheet.graphs import CatalogError, SettingsError
from callsheet.graphs.catalog.model import Record

DATA = "CALLSHEET_DATA"
"""The variable with the folder of the fresh copy, for ``${CALLSHEET_DATA}`` in an ``mcp.json`` and in requests."""
_SECONDS = 30.0


class EndState(NamedTuple):
    """What an attempt left: the folder of the data, and the answer; empty before there is one."""

    folder: Path
    answer: str = ""


class _Check(Record):
    """What is looked at, and what must be there: a text that a pattern matches, or an equal value."""

    matches: str | None = None
    equals: Any = None

    @model_validator(mode="after")
    def _one_condition(self) -> _Check:
        if (self.matches is None) == ("equals" not in self.model_fields_set):
            raise ValueError('give "matches" (a regular expression) or "equals" (a value), but not both')
        try:
            re.compile(self.matches or "")
        except re.error as error:
            raise ValueError(f"{self.matches!r} is not a regular expression: {error}") from error
        return self

    def holds(self, end: EndState) -> bool:
        """Whether it is so; not if it cannot be looked at. Relative paths are in the folder."""
        try:
            found = self.look(end)
        except (OSError, ValueError, sqlite3.Error, subprocess.SubprocessError, httpx.HTTPError):
            return False
        if self.matches is not None:
            text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
            return re.search(self.matches, text) is not None
        return bool(found == self.equals)

    def look(self, end: EndState) -> Any:
        """What is there now."""
        raise NotImplementedError

    def __str__(self) -> str:
        told = self.model_dump(exclude_unset=True)
        return f"{told.pop('kind')}: " + ", ".join(f"{name} {value}" for name, value in sorted(told.items()))


class AnswerCheck(_Check):
    """The text of the answer."""

    kind: Literal["answer"]

    def look(self, end: EndState) -> Any:
        """The text."""
        return end.answer


class FileCheck(_Check):
    """The text of a file."""

    kind: Literal["file"]
    path: Path

    def look(self, end: EndState) -> Any:
        """The text."""
        return (end.folder / self.path).read_text(encoding="utf-8")


class JsonCheck(_Check):
    """A value in a JSON file, found by a JMESPath expression."""

    kind: Literal["json"]
    path: Path
    value: str

    def look(self, end: EndState) -> Any:
        """The value; None if there is none."""
        return jmespath.search(self.value, json.loads((end.folder / self.path).read_text(encoding="utf-8")))


class SqlCheck(_Check):
    """The rows of a query to an SQLite database, each a list."""

    kind: Literal["sql"]
    database: Path
    query: str

    def look(self, end: EndState) -> Any:
        """The rows."""
        with closing(
            sqlite3.connect(f"{(end.folder / self.database).resolve().as_uri()}?mode=ro", uri=True)
        ) as connection:
            return [list(row) for row in connection.execute(self.query)]


class CommandCheck(_Check):
    """The standard output of a command that runs in the folder."""

    kind: Literal["command"]
    argv: tuple[str, ...] = Field(min_length=1)

    def look(self, end: EndState) -> Any:
        """The output."""
        return _ran(self.argv, end.folder, check=False)


class HttpCheck(_Check):
    """The body of an HTTP answer, as text."""

    kind: Literal["http"]
    url: str

    def look(self, end: EndState) -> Any:
        """The body."""
        return httpx.get(self.url, timeout=_SECONDS).text


Check = Annotated[
    AnswerCheck | FileCheck | JsonCheck | SqlCheck | CommandCheck | HttpCheck, Field(discriminator="kind")
]


class Task(Record):
    """One task.

    Attributes:
        id: Its id, unique in the file.
        request: What the model is asked; ``${CALLSHEET_DATA}`` in it is the folder.
        setup: Commands that run in the fresh copy before the task.
        checks: What must hold afterwards, all of it.
    """

    id: str = Field(min_length=1)
    request: str = Field(min_length=1)
    setup: tuple[tuple[str, ...], ...] = ()
    checks: tuple[Check, ...] = Field(min_length=1)

    def unmet(self, end: EndState) -> tuple[str, ...]:
        """The checks that do not hold."""
        return tuple(str(check) for check in self.checks if not check.holds(end))


def _ran(argv: Sequence[str], folder: Path, *, check: bool) -> str:
    done = subprocess.run(  # noqa: S603 (the user's own commands)
        argv, cwd=folder, capture_output=True, text=True, check=check, timeout=_SECONDS
    )
    return done.stdout


class _File(Record):
    data: str | None = None
    tasks: tuple[Task, ...] = Field(min_length=1)


class TaskData:
    """The data of the servers: a folder that is copied anew for every attempt, always to the same place."""

    def __init__(self, source: Path | None, place: Path) -> None:
        self._source, self.place = source, place

    def asked(self, task: Task) -> str:
        """The request of a task, with the folder in it."""
        return task.request.replace(f"${{{DATA}}}", str(self.place))

    def digest(self) -> str:
        """SHA-256 of all files of the folder, with their names."""
        digest = sha256()
        for path in sorted(self._source.rglob("*")) if self._source else ():
            digest.update(f"{path.relative_to(self._source or path)}\0".encode())
            digest.update(path.read_bytes() if path.is_file() else b"")
        return digest.hexdigest()

    def renew(self, setup: Sequence[Sequence[str]] = ()) -> None:
        """Replaces the copy by a fresh one, and runs commands in it.

        Raises:
            SettingsError: A command failed.
        """
        shutil.rmtree(self.place, ignore_errors=True)
        if self._source:
            shutil.copytree(self._source, self.place)
        self.place.mkdir(parents=True, exist_ok=True)
        for argv in setup:
            try:
                _ran(argv, self.place, check=True)
            except (OSError, subprocess.SubprocessError) as error:
                said = getattr(error, "stderr", "") or error
                raise SettingsError(f"the setup {' '.join(argv)!r} failed: {said}") from error


def read_tasks(path: Path, place: Path) -> tuple[tuple[Task, ...], TaskData]:
    """The tasks of a file ``{"data": "folder", "tasks": [...]}``, and their data.

    Raises:
        SettingsError: The file cannot be read, or a task is not valid; the message says where and what.
    """
    try:
        file = _File(**json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except CatalogError as error:
        raise SettingsError(f"{path}: {error}") from error
    except (ValueError, TypeError) as error:
        raise SettingsError(f'{path} holds no tasks, as {{"tasks": [{{"id": "1", ...}}]}}: {error}') from error
    if repeated := sorted(name for name, count in Counter(task.id for task in file.tasks).items() if count > 1):
        raise SettingsError(f"{path}: tasks repeat the id {', '.join(repeated)}")
    source = path.parent / file.data if file.data else None
    if source is not None and not source.is_dir():
        raise SettingsError(f'{path}: there is no folder {source} ("data")')
    return file.tasks, TaskData(source, place)
