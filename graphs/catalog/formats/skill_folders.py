"""Reads folders of Agent Skills, where each skill is a folder with a ``SKILL.md``.

Source: the Agent Skills specification, https://agentskills.io/specification.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.formats.manifests import UNREAD, BoundError, Problem, read_yaml
from callsheet.graphs.catalog.model import Skill
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.text.regular_files import read_regular
from callsheet.graphs.text.unicode import clean

_SKILL_FILE = "[sS][kK][iI][lL][lL].[mM][dD]"
_LARGEST = 500_000
"""Bytes of the largest ``SKILL.md`` that is read."""
LONGEST_SKILL_NAME = 64
"""Characters of the longest name of a skill."""
_MOST_FOLDERS = 10_000
MOST_NODES = 10_000
"""Nodes of YAML in a front matter."""
_PATTERN = re.compile(r"\([^()]{0,500}\)")
_FRONT_MATTER = re.compile(r"\ufeff?\s*---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|$)", re.DOTALL)
_FIELD = re.compile(
    r"^(name|description|allowed-tools|disable-model-invocation)[ \t]*:(.*(?:\n(?:[ \t-].*)?)*)", re.MULTILINE
)


def is_skill(folder: Path) -> bool:
    """Returns whether a folder is itself a skill."""
    return next(folder.glob(_SKILL_FILE), None) is not None


def is_skill_file(path: Path) -> bool:
    """Returns whether a file has the name of the file of a skill, ``SKILL.md`` in any case."""
    return fnmatchcase(path.name, _SKILL_FILE)


def read_skills(folder: Path) -> tuple[list[Skill], list[Problem]]:
    """Returns the skills in a folder and below it by name, and a problem for each file or folder that cannot be read.

    At most 10,000 folders are searched. ``node_modules`` and links to folders are skipped; in a hidden folder, only
    ``skills`` is searched. A skill that only people may choose is left out. ``resolve_skills`` converts the names of
    tools in the front matter to ids.
    """
    skills = dict[str, Skill]()
    problems = list[Problem]()
    for file in _files(folder, problems):
        where = str(file.relative_to(folder))
        try:
            skill = _read(file, folder)
        except CatalogError as error:
            problems.append(Problem(where, "malformed", str(error)))
            continue
        if skill is None:
            continue
        if skill.name in skills:
            problems.append(Problem(where, "malformed", f"a second skill is named {skill.name!r}: rename one of them"))
        else:
            skills[skill.name] = skill
    return [skills[name] for name in sorted(skills)], problems


def _files(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """Yields the ``SKILL.md`` of all skills; adds a problem for each folder that is not searched."""

    def unread(place: str | Path, why: str) -> None:
        problems.append(Problem(str(Path(place).relative_to(folder)), UNREAD, why))

    walk = os.walk(folder, onerror=lambda error: unread(error.filename, f"it cannot be searched: {error.strerror}"))
    for searched, (path, folders, files) in enumerate(walk):
        here = Path(path)
        if searched == _MOST_FOLDERS:
            unread(here, f"more than {_MOST_FOLDERS:,} folders: the rest is not searched for skills")
            return
        # os.walk goes on with the folders that are left in its list.
        if here.name.startswith(".") and searched:
            folders[:] = [name for name in folders if name == "skills"]
            files.clear()
        folders[:] = sorted(name for name in folders if name != "node_modules")
        for name in folders:
            link = here / name
            if not link.is_symlink() or link.resolve().is_relative_to(folder.resolve()):
                continue  # where a link within the folder leads is searched anyway
            yield from link.glob(_SKILL_FILE)
            if next(link.glob(f"*/{_SKILL_FILE}"), None):
                unread(link, f"it is a link to {link.resolve()}, outside the folder: name that folder as a catalog")
        entries = [here / name for name in (*files, *folders)]
        yield from sorted(filter(is_skill_file, entries))


def _read(file: Path, folder: Path) -> Skill | None:
    """Returns the skill in a file; None if only people may choose it."""
    front, body = read_front_matter(_content(file, folder))
    if is_for_people_only(front):
        return None
    name = text_in(front, "name") or file.parent.resolve().name
    if len(name) > LONGEST_SKILL_NAME or shown(name) != name or "/" in name:
        raise CatalogError(
            f"its name {shown(name, most=80)!r} is not 1 to {LONGEST_SKILL_NAME} plain characters without /"
        )
    description = text_in(front, "description")
    if not description:
        raise CatalogError("it has no description: say in 'description' what the skill is for and when to use it")
    return Skill(name=name, description=description, text=body, tools=tuple(_allowed(front)))


def read_front_matter(text: str) -> tuple[JsonObject, str]:
    """Returns the front matter of a ``SKILL.md``, and the instructions after it.

    Raises:
        CatalogError: It has none, or it cannot be read.
    """
    header, body = split_front_matter(text)
    front = clean(_front_matter(header))
    if not isinstance(front, dict):
        raise CatalogError("its front matter is not a mapping with 'name' and 'description'")
    return front, body


def split_front_matter(text: str) -> tuple[str, str]:
    """Returns the YAML of the front matter of a ``SKILL.md``, and the instructions after it.

    Raises:
        CatalogError: It has no front matter.
    """
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise CatalogError("it has no front matter: begin with lines of --- around 'name' and 'description'")
    return match[1], clean(text[match.end() :].strip())


def is_for_people_only(front: JsonObject) -> bool:
    """Returns whether a front matter says that only people may choose the skill."""
    return str(front.get("disable-model-invocation")).lower() in ("true", "yes", "on")


def _front_matter(text: str) -> Any:
    """Returns the front matter.

    Many authors do not quote texts with a colon, so that the whole is no YAML: then its fields are read one by one.
    """
    try:
        return read_yaml(text, "its front matter", most=MOST_NODES)
    except BoundError:
        raise  # too deep or too large: so are its fields
    except CatalogError:
        fields: dict[str, Any] = {}
        for field in _FIELD.finditer(text):
            try:
                fields[field[1]] = read_yaml(field[0], "its front matter", most=MOST_NODES)[field[1]]
            except (CatalogError, TypeError):
                fields[field[1]] = " ".join(field[2].split())
        if "description" not in fields:
            raise
        return fields


def _content(file: Path, folder: Path) -> str:
    """Returns the text of a file in the folder, or raises ``CatalogError``."""
    try:
        place = file.resolve()
        if not place.is_relative_to(folder.resolve()):
            raise CatalogError(f"it is a link to {place}, outside the folder: name that folder as a catalog")
        if not file.is_file():
            raise CatalogError("it is not a file")
        if file.stat().st_size > _LARGEST:
            raise CatalogError(f"larger than {_LARGEST // 1000} KB: move details to other files")
        return read_regular(file, most=_LARGEST).decode("utf-8")
    except (OSError, RuntimeError, UnicodeError) as error:
        raise CatalogError(f"it cannot be read as UTF-8: {error}") from error


def text_in(front: JsonObject, field: str) -> str:
    """Returns a text of a front matter, empty if it has none; raises a ``CatalogError`` if it is no text."""
    value = front.get(field, "")
    if not isinstance(value, str):
        raise CatalogError(f"{field!r} in its front matter is not a text: put it in quotation marks")
    return value.strip()


def _allowed(front: JsonObject) -> Iterator[str]:
    """Yields the names in ``allowed-tools``; ``Bash(git:*)`` is ``Bash``."""
    names = front.get("allowed-tools") or ()
    if isinstance(names, str):
        names = _PATTERN.sub("", names).replace(",", " ").split()
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise CatalogError("'allowed-tools' in its front matter is not a list of names")
    for name in names:
        tool = name.partition("(")[0].strip()
        if tool:
            yield tool
