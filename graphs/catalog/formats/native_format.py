"""The native format of a catalog, which ``export --format json`` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.text.sanitizing import DEEPEST, clean, written_out

FORMAT = 1
"""Version of the format."""
_LEVELS = 6  # levels from the document to a tool's fields; in a manifest, the count starts at the tool


def dump(catalog: Catalog) -> str:
    """The catalog in the native format, which ``load`` reads back unchanged."""
    body = {"callsheet": FORMAT, "agents": [], **catalog.model_dump(mode="json", exclude_defaults=True)}
    return written_out(json.dumps(body, ensure_ascii=False, indent=1))


def from_native(document: Mapping[str, Any], where: str) -> Catalog:
    """The catalog of a parsed document.

    Raises:
        CatalogError: It is of another version, or not valid.
    """
    if document["callsheet"] != FORMAT:
        raise CatalogError(f"{where}: unknown format {document['callsheet']!r}; this program reads {FORMAT}")
    nodes = {name: document[name] for name in ("agents", "skills") if name in document}
    try:
        return Catalog(**clean(nodes, deepest=DEEPEST + _LEVELS))
    except CatalogError as error:
        raise CatalogError(f"{where}: {error}") from error
