"""The native format of a catalog, which ``export --format json`` writes."""

from __future__ import annotations

import json

from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.text.sanitizing import written_out

FORMAT = 1
"""Version of the format."""


def dump(catalog: Catalog) -> str:
    """The catalog in the native format, which ``load`` reads back unchanged."""
    body = {
        "callsheet": FORMAT,
        "agents": catalog.model_dump(mode="json", exclude_defaults=True).get("agents", []),
    }
    return written_out(json.dumps(body, ensure_ascii=False, indent=1))
