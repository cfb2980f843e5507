"""GraphML, for networkx, Gephi, yEd and igraph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.export.property_graph import knowledge_graph

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_graphml(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> str:
    """The knowledge graph as GraphML.

    Characters that XML does not allow, such as NUL, become U+FFFD in texts; keys of nodes are percent-encoded and stay
    unique.

    Args:
        catalog: The catalog.
        taxonomy: The taxonomy of the capabilities; None: the default taxonomy.
    """
    import networkx as nx

    graph = knowledge_graph(catalog, taxonomy)
    for _, properties in graph.nodes(data=True):
        properties.update(_in_xml(properties))
    for _, _, properties in graph.edges(data=True):
        properties.update(_in_xml(properties))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(nx.generate_graphml(graph)) + "\n"


def _in_xml(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _NOT_XML.sub("\ufffd", value) if isinstance(value, str) else value for name, value in properties.items()
    }
