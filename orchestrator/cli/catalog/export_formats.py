"""The formats of ``callsheet export``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callsheet.graphs import Capability, Catalog

FORMS: Mapping[str, tuple[str, ...]] = {
    "turtle": ("base",),
    "jsonld": ("base",),
    "ntriples": ("base",),
    "graphml": (),
    "cypher": (),
    "cypher-schema": (),
    "mermaid": ("around", "depth"),
    "svg": (),
    "html": (),
    "json": (),
}
"""The options of each format, by the name for ``--format``; other options are a usage error."""


DRAWN = ("mermaid", "svg", "html")
"""The formats that draw agents and tools only."""


def written(
    form: str,
    catalog: Catalog,
    taxonomy: Sequence[Capability] | None,
    *,
    around: str | None = None,
    depth: int | None = None,
    base: str | None = None,
) -> str:
    """The catalog as a document in this format."""
    from callsheet.graphs import dump, export
    from callsheet.graphs.export import pictures

    match form:
        case "graphml":
            return export.to_graphml(catalog, taxonomy)
        case "cypher":
            return export.to_cypher(catalog, taxonomy)
        case "cypher-schema":
            return export.cypher_schema()
        case "mermaid":
            return export.to_mermaid(catalog, around=around, depth=depth or 2)
        case "svg":
            return pictures.to_svg(catalog)
        case "html":
            return pictures.to_html(catalog)
        case "json":
            return dump(catalog) + "\n"
    from callsheet.graphs.rdf import BASE, RdfFormat, to_rdf

    return to_rdf(catalog, taxonomy, form=RdfFormat(form), base=base or BASE)
