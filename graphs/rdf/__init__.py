"""The catalog as RDF in Callsheet's vocabulary: writing, reading and validation. Needs the extra ``rdf``."""

import logging

try:
    import rdflib as _rdflib  # noqa: F401
except ImportError as error:
    raise ImportError("RDF needs the extra rdf, which is not installed: pip install rdflib pyshacl") from error

from callsheet.graphs.rdf.catalog_reader import from_graph
from callsheet.graphs.rdf.catalog_writer import to_graph
from callsheet.graphs.rdf.serialization import RdfFormat, from_rdf, graph_of_file, parse, read_rdf, to_rdf
from callsheet.graphs.rdf.validation import checks, graph_findings, rdf_file_findings, rdf_findings, shapes
from callsheet.graphs.rdf.vocabulary_terms import BASE, CS, vocabulary

logging.getLogger("rdflib").addHandler(logging.NullHandler())  # relevant warnings are errors here

__all__ = [
    "BASE",
    "CS",
    "RdfFormat",
    "checks",
    "from_graph",
    "from_rdf",
    "graph_findings",
    "graph_of_file",
    "parse",
    "rdf_file_findings",
    "rdf_findings",
    "read_rdf",
    "shapes",
    "to_graph",
    "to_rdf",
    "vocabulary",
]
