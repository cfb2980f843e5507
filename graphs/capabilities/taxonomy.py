"""Taxonomies of capabilities, from broad to narrow: the paper's, our detailed one, and a user's own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from callsheet.graphs.catalog.model import Name, Record
from callsheet.graphs.errors import CatalogError, lookup, near_names
from callsheet.graphs.text.regular_files import read_regular

Phrase = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"\S")]


class Capability(Record):
    """Something that a tool can do, with a definition in one sentence and example requests.

    Source: *Representing Agentic Tools in Knowledge Graphs* (GenAIK-NORA 2026), section 4.2.

    Attributes:
        broader: Id of the broader capability (``skos:broader``); None for the broadest.
        words: Words and phrases that indicate the capability in a tool's name or text.
        general: None if the tools with this capability serve one subject, such as the weather. For tools that serve any
            subject, such as a search of the web: the probability (0 to 1) that one helps if no other tool fits the
            request. The confidence that the request asks for the capability is added to it.
    """

    id: Name
    name: Name
    definition: Phrase
    examples: Annotated[tuple[Phrase, ...], Field(min_length=2, max_length=50)]
    broader: str | None = None
    words: Annotated[tuple[Phrase, ...], Field(max_length=200)] = ()
    general: Annotated[float, Field(ge=0, le=1)] | None = None


class Taxonomy(Record):
    """Capabilities that form trees; raises a ``CatalogError`` for a repeated id, an unknown parent or a cycle."""

    capabilities: tuple[Capability, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        broader: dict[str, str | None] = {}
        for capability in self.capabilities:
            if capability.id in broader:
                raise CatalogError(f"two capabilities have the id {capability.id!r}: rename or remove one")
            broader[capability.id] = capability.broader
        for name, wider in broader.items():
            if wider is not None and wider not in broader:
                raise CatalogError(
                    f"capability {name!r} is under {wider!r}, which the taxonomy does not hold"
                    f"{near_names(wider, broader)}: correct broader or add it"
                )
        try:
            TopologicalSorter({name: [wider] for name, wider in broader.items() if wider is not None}).prepare()
        except CycleError as error:
            path = " > ".join(reversed(error.args[1]))
            raise CatalogError(f"capabilities form a cycle: {path}: remove one broader") from error
        return self

    @cached_property
    def by_id(self) -> Mapping[str, Capability]:
        """Maps each id to its capability, in the order of the file."""
        return {capability.id: capability for capability in self.capabilities}

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Returns the ids of the narrowest capabilities, to which tools are assigned."""
        broader = {capability.broader for capability in self.capabilities}
        return tuple(capability.id for capability in self.capabilities if capability.id not in broader)

    def capability(self, capability_id: str) -> Capability:
        """Returns the capability of this id, or raises ``UnknownNameError``, which suggests similar ids."""
        return lookup(self.by_id, capability_id, "capability", "taxonomy")

    def ancestors(self, capability_id: str) -> tuple[str, ...]:
        """Returns the ids of the broader capabilities, nearest first."""
        ids = list[str]()
        broader = self.capability(capability_id).broader
        while broader is not None:
            ids.append(broader)
            broader = self.by_id[broader].broader
        return tuple(ids)

    def at(self, depth: int, capability_id: str) -> str:
        """Returns the id at this depth on the path from the broadest capability (depth 0) to this one.

        If the capability is less deep, its own id is returned.
        """
        path = [*reversed(self.ancestors(capability_id)), capability_id]
        return path[min(depth, len(path) - 1)]


_Shipped = Literal["default", "detailed"]
SHIPPED: tuple[_Shipped, ...] = ("default", "detailed")


class _File(Record):
    """The content of a taxonomy file."""

    capabilities: tuple[Capability, ...]
    extends: _Shipped | Literal[False] = "default"


@cache
def shipped_taxonomy(name: _Shipped) -> Taxonomy:
    """Returns the ``default`` taxonomy, which is the paper's, or our ``detailed`` one with narrower capabilities."""
    text = files("callsheet.graphs.capabilities").joinpath(f"{name}.json").read_text(encoding="utf-8")
    return Taxonomy(**json.loads(text))


def default_taxonomy() -> Taxonomy:
    """Returns the taxonomy of the paper: four clusters of ten capabilities.

    Source: *Representing Agentic Tools in Knowledge Graphs*, section 4.2; definitions, examples and words are ours.
    """
    return shipped_taxonomy("default")


def shipped_capabilities() -> tuple[Capability, ...]:
    """Returns all shipped capabilities: the default ones, and those that only the detailed taxonomy has."""
    return tuple({**shipped_taxonomy("detailed").by_id, **default_taxonomy().by_id}.values())


def read_taxonomy(taxonomy: Taxonomy | str | Path | None = None) -> Taxonomy:
    """Reads a taxonomy from a file, or returns the shipped one with this name, ``default`` or ``detailed``.

    None stands for the value of ``CALLSHEET_TAXONOMY``, otherwise for the default. A file is JSON, ``{"capabilities":
    [...], "extends": "default"}``. Its capabilities are added to the named taxonomy (by default the default one), or
    stand alone with ``"extends": false``.

    Raises:
        CatalogError: The file cannot be read, or is not valid.
    """
    if isinstance(taxonomy, Taxonomy):
        return taxonomy
    path = taxonomy or os.environ.get("CALLSHEET_TAXONOMY") or "default"
    if path in SHIPPED:
        return shipped_taxonomy(path)
    try:
        content: Any = json.loads(read_regular(Path(path)))
    except (OSError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise CatalogError(f"the taxonomy {path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise CatalogError(f'the taxonomy {path} must be an object {{"capabilities": [...]}}')
    try:
        file = _File(**content)
        base = shipped_taxonomy(file.extends) if file.extends else Taxonomy()
        return Taxonomy(capabilities=(*base.capabilities, *file.capabilities))
    except CatalogError as error:
        raise CatalogError(f"the taxonomy {path}: {error}") from error
