"""Reads JSON-LD by rdflib with a loader that never fetches remote contexts."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import NoReturn

from rdflib import RDF, ConjunctiveGraph, Graph

from callsheet.graphs.catalog.errors import CatalogError

_CONTEXT, _PARSER = "rdflib.plugins.shared.jsonld.context", "rdflib.plugins.parsers.jsonld"


def read_json_ld(text: str, base: str) -> Graph:
    """The default graph in a JSON-LD text.

    Raises:
        CatalogError: The text is not JSON, or its context is in another document.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise CatalogError(f"not valid JSON: {error.msg}, line {error.lineno} column {error.colno}") from error
    except (RecursionError, ValueError) as error:
        raise CatalogError("not valid JSON-LD: nested too deeply, or a number too long") from error
    if not isinstance(document, dict | list):
        raise CatalogError("not valid JSON-LD: it is neither an object nor a list of objects")
    graph = Graph(bind_namespaces="none")
    _parser().to_rdf(document, ConjunctiveGraph(store=graph.store, identifier=graph.identifier), base=base)
    return graph


@cache
def _parser() -> ModuleType:
    """Rdflib's parser with our own copy of its context module, because rdflib has no setting for the loader."""
    context, parser = _copy_of(_CONTEXT), _copy_of(_PARSER)
    vars(context)["source_to_json"] = _refuse
    for name in ("Context", "Term", "UNDEF"):
        vars(parser)[name] = vars(context)[name]
    vars(parser)["TYPE_TERM"] = context.Term(str(RDF.type), "@type", "@vocab")
    return parser


def _copy_of(name: str) -> ModuleType:
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"this version of rdflib has no {name}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _refuse(source: str) -> NoReturn:
    raise CatalogError(f"its @context is at {source[:80]!r}, which is not fetched: write it into the file")
