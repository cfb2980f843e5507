"""Exports to the formats of other programs: GraphML, Cypher, Mermaid. RDF is in ``graphs.rdf``."""

from callsheet.graphs.export.graph_formats import cypher_schema, to_cypher, to_graphml, to_mermaid

__all__ = ["cypher_schema", "to_cypher", "to_graphml", "to_mermaid"]
