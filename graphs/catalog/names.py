"""Resolves the names of tools and skills that a model or a person writes, even if they are not exact."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from callsheet.graphs.catalog.model import Catalog, Skill
from callsheet.graphs.errors import near_ids
from callsheet.graphs.text.hidden import shown

_SEPARATORS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class NamedTools:
    """The tools and skills that a list of names refers to.

    Attributes:
        ids: Ids of the tools and skills, each once, in the order of the names.
        unknown: Name -> similar ids, for each name that refers to nothing or to several things.
        agents: Names that refer to an agent instead of a tool, as they were written.
    """

    ids: tuple[str, ...] = ()
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    agents: tuple[str, ...] = ()


def named_tools(catalog: Catalog, names: Iterable[str]) -> NamedTools:
    """Resolves names of tools and skills: ``agent/tool``, ``skills/name``, or a bare name that only one tool has.

    Differences in case and in separators (``agent__tool``) are ignored if only one tool matches.
    """
    ids: dict[str, None] = {}
    unknown: dict[str, tuple[str, ...]] = {}
    agents: list[str] = []
    known = [*catalog.tools, *catalog.skills_by_id]
    folded: dict[str, list[str]] | None = None
    for name in dict.fromkeys(names):
        if name in catalog.tools or name in catalog.skills_by_id:
            ids[name] = None
            continue
        if name in catalog.by_id:
            agents.append(name)
            continue
        if folded is None:
            folded = _folded(known)
        meant = folded.get(_fold(name), [])
        if len(meant) == 1:
            ids[meant[0]] = None
        else:
            unknown[name] = tuple(meant or near_ids(name, known))
    return NamedTools(tuple(ids), unknown, tuple(agents))


def skill_named(catalog: Catalog, name: str) -> tuple[Skill, str] | None:
    """Returns the skill of an id, and an empty path; or a skill of a server, and the path of a file, for ``id/path``.

    None if the name is neither.
    """
    skill = catalog.skills_by_id.get(name)
    if skill is not None:
        return skill, ""
    skill_id = name
    while "/" in skill_id:
        skill_id = skill_id.rpartition("/")[0]
        skill = catalog.skills_by_id.get(skill_id)
        if skill is not None and skill.agent:
            return skill, name.removeprefix(f"{skill_id}/")
    return None


def is_skill_file(catalog: Catalog, name: str) -> bool:
    """Returns whether a name is that of a file of a skill, ``id/path``."""
    named = skill_named(catalog, name)
    return named is not None and bool(named[1])


def _folded(ids: Iterable[str]) -> dict[str, list[str]]:
    """Returns every id under its own folded form and under that of its bare name."""
    folded: dict[str, list[str]] = defaultdict(list)
    for one in ids:
        for form in {_fold(one), _fold(one.partition("/")[2])}:
            folded[form].append(one)
    return dict(folded)


def _fold(name: str) -> str:
    """Returns the name as a model sees it, in lower case with one kind of separator.

    Itself if nothing else would be left.
    """
    seen = shown(name, most=None)
    return _SEPARATORS.sub("_", seen.lower()).strip("_") or seen
