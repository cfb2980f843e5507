"""Writes, reads and validates catalogs as RDF in Callsheet's vocabulary; needs the extra ``rdf``."""

import logging

from callsheet.graphs.errors import needs_extra as _needs_extra

try:
    import rdflib as _rdflib  # noqa: F401
except ImportError as error:
    raise ImportError(f"RDF {_needs_extra('rdf')}") from error

from callsheet.graphs.rdf.catalog_graph import (
    BASE as BASE,
    CS as CS,
    from_graph as from_graph,
    to_graph as to_graph,
    vocabulary as vocabulary,
)
from callsheet.graphs.rdf.serialization import (
    RdfFormat as RdfFormat,
    from_rdf as from_rdf,
    graph_of_file as graph_of_file,
    parse as parse,
    read_rdf as read_rdf,
    to_rdf as to_rdf,
)
from callsheet.graphs.rdf.validation import (
    checks as checks,
    graph_findings as graph_findings,
    rdf_file_findings as rdf_file_findings,
    rdf_findings as rdf_findings,
    shapes as shapes,
)

logging.getLogger("rdflib").addHandler(logging.NullHandler())  # relevant warnings are errors here
