"""Exports to the formats of other programs: GraphML, Cypher, Mermaid. RDF is in ``graphs.rdf``."""

from callsheet.graphs.export.cypher import cypher_schema, to_cypher
from callsheet.graphs.export.mermaid import to_mermaid
from callsheet.graphs.export.property_graph import to_graphml

__all__ = ["cypher_schema", "to_cypher", "to_graphml", "to_mermaid"]
