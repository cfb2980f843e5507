"""What tools can do, in the words of a taxonomy: capabilities from broad to narrow, as data that a user may extend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from callsheet.graphs.catalog.errors import CatalogError, UnknownNameError
from callsheet.graphs.catalog.model import Name, Record, near_names

Phrase = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"\S")]


class Capability(Record):
    """Something that a tool can do.

    Source: *Representing Agentic Tools in Knowledge Graphs* (GenAIK-NORA 2026) links tools to capabilities of a small
    taxonomy; the definitions and examples here are ours.

    Attributes:
        id: Its id, unique in its taxonomy.
        name: A name for people.
        definition: What it is, in one sentence.
        examples: Things that are asked for or said where it is meant; at least two.
        broader: Id of the wider capability that it is a part of (``skos:broader``); None for the widest.
        words: Words and phrases that tell it in a tool's name or text.
    """

    id: Name
    name: Name
    definition: Phrase
    examples: Annotated[tuple[Phrase, ...], Field(min_length=2, max_length=50)]
    broader: str | None = None
    words: Annotated[tuple[Phrase, ...], Field(max_length=200)] = ()


class Taxonomy(Record):
    """Capabilities that hang together as trees, checked as a whole.

    Raises:
        CatalogError: Two have one id, a wider one is unknown, or they go round in a circle.
    """

    capabilities: tuple[Capability, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        seen: set[str] = set()
        for capability in self.capabilities:
            if capability.id in seen:
                raise CatalogError(f"two capabilities have the id {capability.id!r}: rename or remove one")
            seen.add(capability.id)
        for capability in self.capabilities:
            if capability.broader is not None and capability.broader not in seen:
                raise CatalogError(
                    f"capability {capability.id!r} is under {capability.broader!r}, which the taxonomy does not hold"
                    f"{near_names(capability.broader, seen)}: correct broader or add it"
                )
        self._check_ends()
        return self

    def _check_ends(self) -> None:
        ending: set[str] = set()
        for start in self.by_id:
            path: dict[str, None] = {}
            here: str | None = start
            while here is not None and here not in ending:
                if here in path:
                    circle = list(path)[list(path).index(here) :]
                    raise CatalogError(
                        f"capabilities go round in a circle: {' > '.join([*circle, here])}: take one broader away"
                    )
                path[here] = None
                here = self.by_id[here].broader
            ending.update(path)

    @cached_property
    def by_id(self) -> Mapping[str, Capability]:
        """Every capability by id, in the order of the file."""
        return {capability.id: capability for capability in self.capabilities}

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Ids of those that nothing is narrower than: what tools are assigned to."""
        wider = {capability.broader for capability in self.capabilities}
        return tuple(capability.id for capability in self.capabilities if capability.id not in wider)

    def capability(self, capability_id: str) -> Capability:
        """The capability of this id.

        Raises:
            UnknownNameError: There is none; the message names the nearest ids.
        """
        if capability_id not in self.by_id:
            hint = near_names(capability_id, self.by_id)
            raise UnknownNameError(f"no capability {capability_id!r} in the taxonomy{hint}")
        return self.by_id[capability_id]

    def ancestors(self, capability_id: str) -> tuple[str, ...]:
        """Ids of the wider ones, the nearest first."""
        return tuple(self._wider(capability_id))

    def at(self, depth: int, capability_id: str) -> str:
        """The id at this depth on the way from the widest (0) to this one; itself where it is not that deep."""
        path = [*reversed(self.ancestors(capability_id)), capability_id]
        return path[min(depth, len(path) - 1)]

    def _wider(self, capability_id: str) -> Iterator[str]:
        wider = self.capability(capability_id).broader
        while wider is not None:
            yield wider
            wider = self.by_id[wider].broader


class _File(Record):
    """A taxonomy as a file says it."""

    capabilities: tuple[Capability, ...]
    extends: bool = True


@cache
def default_taxonomy() -> Taxonomy:
    """The one that ships with Callsheet: four clusters, ten leaves under them, and what is narrower."""
    text = files("callsheet.graphs.capabilities").joinpath("capabilities.json").read_text(encoding="utf-8")
    return Taxonomy(**json.loads(text))


def read_taxonomy(path: str | Path) -> Taxonomy:
    """A taxonomy from a JSON file: ``{"capabilities": [...], "extends": true}``.

    Unless it says ``"extends": false``, its capabilities are added to the default ones and may be under those.

    Raises:
        CatalogError: The file cannot be read, is not of that form, or is not valid as a whole.
    """
    try:
        content: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise CatalogError(f"the taxonomy {path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise CatalogError(f'the taxonomy {path} must be an object {{"capabilities": [...]}}, not {_kind(content)}')
    try:
        given = _File(**content)
        known = default_taxonomy().capabilities if given.extends else ()
        return Taxonomy(capabilities=(*known, *given.capabilities))
    except CatalogError as error:
        raise CatalogError(f"the taxonomy {path}: {error}") from error


def _kind(value: object) -> str:
    match value:
        case list():
            return "a list"
        case str():
            return "a text"
        case _:
            return f"{value!r:.40}"
