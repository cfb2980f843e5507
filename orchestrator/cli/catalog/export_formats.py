"""The formats of ``callsheet export``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callsheet.graphs import Capability, Catalog


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is exported, and with which options; None for options that were not given."""

    catalog: Catalog
    taxonomy: Sequence[Capability] | None = None
    around: str | None = None
    depth: int | None = None
    base: str | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """One format of export.

    Attributes:
        write: Returns the document.
        takes: The options that it uses; other options are a usage error.
    """

    write: Callable[[Wanted], str]
    takes: tuple[str, ...] = ()


def _rdf(form: str) -> Callable[[Wanted], str]:
    def write(wanted: Wanted) -> str:
        from callsheet.graphs.rdf import BASE, RdfFormat, to_rdf

        return to_rdf(wanted.catalog, wanted.taxonomy, form=RdfFormat(form), base=wanted.base or BASE)

    return write


def _graphml(wanted: Wanted) -> str:
    from callsheet.graphs.export import to_graphml

    return to_graphml(wanted.catalog, wanted.taxonomy)


def _cypher(wanted: Wanted) -> str:
    from callsheet.graphs.export import to_cypher

    return to_cypher(wanted.catalog, wanted.taxonomy)


def _cypher_schema(_: Wanted) -> str:
    from callsheet.graphs.export import cypher_schema

    return cypher_schema()


def _mermaid(wanted: Wanted) -> str:
    from callsheet.graphs.export import to_mermaid

    return to_mermaid(wanted.catalog, around=wanted.around, depth=wanted.depth or 2)


def _svg(wanted: Wanted) -> str:
    from callsheet.graphs.export.pictures import to_svg

    return to_svg(wanted.catalog)


def _html(wanted: Wanted) -> str:
    from callsheet.graphs.export.pictures import to_html

    return to_html(wanted.catalog)


def _json(wanted: Wanted) -> str:
    from callsheet.graphs import dump

    return dump(wanted.catalog) + "\n"


FORMS: Mapping[str, Form] = {
    "turtle": Form(_rdf("turtle"), ("base",)),
    "jsonld": Form(_rdf("jsonld"), ("base",)),
    "ntriples": Form(_rdf("ntriples"), ("base",)),
    "graphml": Form(_graphml),
    "cypher": Form(_cypher),
    "cypher-schema": Form(_cypher_schema),
    "mermaid": Form(_mermaid, ("around", "depth")),
    "svg": Form(_svg),
    "html": Form(_html),
    "json": Form(_json),
}
"""Every format of export, by the name for ``--format``."""
