"""Folders of Agent Skills: each skill is a folder with a ``SKILL.md``.

Source: the Agent Skills specification, https://agentskills.io/specification.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.documents import read_yaml
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.catalog.model import Skill
from callsheet.graphs.text.sanitizing import clean, shown

SKILL_FILE = "SKILL.md"
_LARGEST, _LONGEST_NAME, _DEEPEST, _MOST_FOLDERS, _MOST_NODES = 500_000, 64, 3, 10_000, 10_000
_PATTERN = re.compile(r"\([^()]{0,500}\)")
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|$)", re.DOTALL)


def is_skill(folder: Path) -> bool:
    """Whether a folder is itself a skill."""
    return (folder / SKILL_FILE).is_file()


def read_skills(folder: Path) -> tuple[list[Skill], list[Problem]]:
    """The skills in a folder and three levels below it; hidden folders and ``node_modules`` are not searched.

    A skill whose author lets only people choose it is left out. Links to folders are not followed.

    Returns:
        The skills by name, with the tools that their front matter allows by name (``resolve_skills`` makes these ids),
        and a problem for each ``SKILL.md`` that cannot be used.
    """
    skills, problems = dict[str, Skill](), list[Problem]()
    for searched, file in enumerate(_files(folder)):
        where = str(file.relative_to(folder))
        if searched == _MOST_FOLDERS:
            said = f"more than {_MOST_FOLDERS:,} folders: the rest is not searched for skills"
            problems.append(Problem(where, "malformed", said))
            break
        if file.name != SKILL_FILE:
            continue
        try:
            skill = _read(file, folder)
        except CatalogError as error:
            problems.append(Problem(where, "malformed", str(error)))
            continue
        if skill and skill.name in skills:
            problems.append(Problem(where, "malformed", f"a second skill is named {skill.name!r}: rename one of them"))
        elif skill:
            skills[skill.name] = skill
    return [skills[name] for name in sorted(skills)], problems


def _files(folder: Path) -> Iterator[Path]:
    """The ``SKILL.md`` of each folder that has one, otherwise the folder itself."""
    for path, folders, files in os.walk(folder):
        here = Path(path)
        linked = [here / name / SKILL_FILE for name in folders if (here / name).is_symlink()]
        yield from (file for file in linked if file.exists())
        # A skill's own folders hold its files, not further skills.
        has_one = SKILL_FILE in files or SKILL_FILE in folders
        yield here / SKILL_FILE if has_one else here
        deeper = not has_one and len(here.relative_to(folder).parts) < _DEEPEST
        folders[:] = sorted(n for n in folders if deeper and not n.startswith(".") and n != "node_modules")


def _read(file: Path, folder: Path) -> Skill | None:
    """The skill in a file; None if only people may choose it."""
    text = _content(file, folder)
    if not (match := _FRONT_MATTER.match(text)):
        raise CatalogError("it has no front matter: begin with lines of --- around 'name' and 'description'")
    try:
        front = clean(read_yaml(match.group(1), "its front matter", most=_MOST_NODES))
    except CatalogError as error:
        quoted = "; put texts that hold a colon in quotation marks" if "mapping values" in str(error) else ""
        raise CatalogError(f"{error}{quoted}") from error
    if not isinstance(front, dict):
        raise CatalogError("its front matter is not a mapping with 'name' and 'description'")
    if str(front.get("disable-model-invocation")).lower() in ("true", "yes", "on"):
        return None
    name = _text(front, "name") or file.parent.resolve().name
    if len(name) > _LONGEST_NAME or shown(name) != name or "/" in name:
        raise CatalogError(f"its name {shown(name, most=80)!r} is not 1 to {_LONGEST_NAME} plain characters without /")
    if not (description := _text(front, "description")):
        raise CatalogError("it has no description: say in 'description' what the skill is for and when to use it")
    body = clean(text[match.end() :].strip())
    return Skill(name=name, description=description, text=body, tools=tuple(_allowed(front)))


def _content(file: Path, folder: Path) -> str:
    try:
        place = file.resolve()
        if not place.is_relative_to(folder.resolve()):
            raise CatalogError(f"it is a link to {place}, outside the folder: name that folder as a catalog")
        if not file.is_file():
            raise CatalogError("it is not a file")
        if file.stat().st_size > _LARGEST:
            raise CatalogError(f"larger than {_LARGEST // 1000} KB: move details to other files")
        return file.read_bytes().decode("utf-8")
    except (OSError, RuntimeError, UnicodeError) as error:
        raise CatalogError(f"it cannot be read as UTF-8: {error}") from error


def _text(front: Mapping[str, Any], field: str) -> str:
    value = front.get(field, "")
    if not isinstance(value, str):
        raise CatalogError(f"{field!r} in its front matter is not a text: put it in quotation marks")
    return value.strip()


def _allowed(front: Mapping[str, Any]) -> Iterator[str]:
    """The names in ``allowed-tools``; ``Bash(git:*)`` is ``Bash``."""
    value = front.get("allowed-tools") or ()
    names = _PATTERN.sub("", value).replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise CatalogError("'allowed-tools' in its front matter is not a list of names")
    return filter(None, (name.partition("(")[0].strip() for name in names))
