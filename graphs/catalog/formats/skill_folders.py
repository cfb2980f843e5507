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
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.catalog.formats.yaml_text import read_yaml
from callsheet.graphs.catalog.model import Skill
from callsheet.graphs.text.sanitizing import clean, shown

FILE = "SKILL.md"
_LARGEST, _LONGEST_NAME, _DEEPEST, _MOST_FOLDERS = 500_000, 64, 3, 10_000
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|$)", re.DOTALL)


def is_skill(folder: Path) -> bool:
    """Whether a folder is itself a skill."""
    return (folder / FILE).is_file()


def read_skills(folder: Path) -> tuple[list[Skill], list[Problem]]:
    """The skills in a folder and three levels below it; hidden folders and links to folders are not followed.

    Returns:
        The skills by name, with the tools that their front matter allows by name (``resolve_skills`` makes these ids),
        and a problem for each ``SKILL.md`` that was left out.

    Raises:
        CatalogError: There are too many folders to search.
    """
    skills, problems = list[Skill](), list[Problem]()
    for file in _files(folder):
        where = str(file.relative_to(folder))
        try:
            skill = _read(file, folder)
        except CatalogError as error:
            problems.append(Problem(where, "malformed", str(error)))
            continue
        if any(skill.name == other.name for other in skills):
            problems.append(Problem(where, "malformed", f"a second skill is named {skill.name!r}: rename one of them"))
        else:
            skills.append(skill)
    return sorted(skills, key=lambda skill: skill.name), problems


def _files(folder: Path) -> Iterator[Path]:
    for searched, (path, folders, files) in enumerate(os.walk(folder)):
        if searched >= _MOST_FOLDERS:
            raise CatalogError(f"{folder}: more than {_MOST_FOLDERS:,} folders: name the folder of the skills")
        here = Path(path)
        if FILE in files:
            yield here / FILE
        # A skill's own folders hold its files, not further skills.
        deeper = FILE not in files and len(here.relative_to(folder).parts) < _DEEPEST
        folders[:] = sorted(name for name in folders if deeper and not name.startswith("."))


def _read(file: Path, folder: Path) -> Skill:
    if not file.resolve().is_relative_to(folder.resolve()):
        raise CatalogError(f"it is a link to {file.resolve()}, outside the folder: it is left out")
    try:
        if file.stat().st_size > _LARGEST:
            raise CatalogError(f"larger than {_LARGEST // 1000} KB: move details to other files")
        text = file.read_bytes().decode("utf-8")
    except (OSError, UnicodeError) as error:
        raise CatalogError(f"it cannot be read as UTF-8: {error}") from error
    if not (match := _FRONT_MATTER.match(text)):
        raise CatalogError("it has no front matter: begin with lines of --- around 'name' and 'description'")
    try:
        front = clean(read_yaml(match.group(1), "its front matter"))
    except CatalogError as error:
        raise CatalogError(f"{error}; put texts that hold a colon in quotation marks") from error
    if not isinstance(front, dict):
        raise CatalogError("its front matter is not a mapping with 'name' and 'description'")
    if front.get("disable-model-invocation") is True:
        raise CatalogError("its author lets only people choose it (disable-model-invocation): it is left out")
    name = _text(front, "name") or file.parent.resolve().name
    if len(name) > _LONGEST_NAME or shown(name) != name or "/" in name:
        raise CatalogError(f"its name {shown(name, most=80)!r} is not 1 to {_LONGEST_NAME} plain characters without /")
    if not (description := _text(front, "description")):
        raise CatalogError("it has no description: say in 'description' what the skill is for and when to use it")
    body = clean(text[match.end() :].strip())
    return Skill(name=name, description=description, text=body, tools=tuple(_allowed(front)))


def _text(front: Mapping[str, Any], field: str) -> str:
    value = front.get(field, "")
    if not isinstance(value, str):
        raise CatalogError(f"{field!r} in its front matter is not a text: put it in quotation marks")
    return value.strip()


def _allowed(front: Mapping[str, Any]) -> Iterator[str]:
    """The names in ``allowed-tools``; ``Bash(git:*)`` is ``Bash``."""
    value = front.get("allowed-tools") or ()
    names = re.sub(r"\([^)]*\)", "", value).replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise CatalogError("'allowed-tools' in its front matter is not a list of names")
    return (name.partition("(")[0].strip() for name in names)
