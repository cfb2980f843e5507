"""Writes and reads RDF in three formats."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, cast

from rdflib import Graph
from rdflib.plugins.parsers.ntriples import NTGraphSink, W3CNTriplesParser

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.rdf.catalog_reader import from_graph
from callsheet.graphs.rdf.catalog_writer import to_graph
from callsheet.graphs.rdf.formats.json_ld import json_ld, read_json_ld
from callsheet.graphs.rdf.vocabulary_terms import BASE, prefixes
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.sanitizing import written_out


class RdfFormat(StrEnum):
    """A text format of RDF."""

    TURTLE = "turtle"
    JSON_LD = "jsonld"
    N_TRIPLES = "ntriples"


_OF_SUFFIX: Mapping[str, RdfFormat] = {
    ".ttl": RdfFormat.TURTLE,
    ".jsonld": RdfFormat.JSON_LD,
    ".nt": RdfFormat.N_TRIPLES,
}
_BAD_TURTLE = linear(r"at line (?P<line>\d+) of <.*?>: Bad syntax \((?P<why>.*)\) at \^ in:")
_LONGEST = 200
_WORDS = {RdfFormat.TURTLE: "Turtle", RdfFormat.JSON_LD: "JSON-LD", RdfFormat.N_TRIPLES: "N-Triples"}


def to_rdf(
    catalog: Catalog,
    taxonomy: Sequence[Capability] | None = None,
    *,
    form: RdfFormat = RdfFormat.TURTLE,
    base: str = BASE,
) -> str:
    """The catalog as RDF text, which ``from_rdf`` reads back unchanged; arguments and errors as for ``to_graph``."""
    graph = to_graph(catalog, taxonomy, base=base)
    if form is RdfFormat.JSON_LD:
        return written_out(json_ld(graph, prefixes(base)))
    if form is RdfFormat.N_TRIPLES:
        return written_out("\n".join(sorted(graph.serialize(format="nt").strip().split("\n"))) + "\n", longest=8)
    return written_out(graph.serialize(format="turtle"), longest=8)


def from_rdf(text: str, *, form: RdfFormat = RdfFormat.TURTLE) -> Catalog:
    """The catalog in an RDF text.

    Raises:
        CatalogError: The text is not valid in this format, or as for ``from_graph``.
    """
    return from_graph(parse(text, form=form))


def read_rdf(path: Path) -> Catalog:
    """The catalog in a file; the suffix determines the format: ``.ttl``, ``.jsonld`` or ``.nt``.

    Raises:
        CatalogError: The file cannot be read, or as for ``from_rdf``; the message begins with its path.
    """
    graph = graph_of_file(path)
    try:
        return from_graph(graph)
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from error


def graph_of_file(path: Path) -> Graph:
    """The graph in an RDF file, valid as a catalog or not.

    Raises:
        CatalogError: The file cannot be read, or is not valid in the format of its suffix.
    """
    if path.suffix.lower() not in _OF_SUFFIX:
        raise CatalogError(f"{path}: not an RDF file: its name should end in {', '.join(_OF_SUFFIX)}")
    try:
        return parse(path.read_text(encoding="utf-8-sig"), form=_OF_SUFFIX[path.suffix.lower()])
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from error
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from error


def parse(text: str, *, form: RdfFormat) -> Graph:
    """The graph in an RDF text, without network access.

    Raises:
        CatalogError: The text is not valid in this format, or it is JSON-LD whose context is in another document.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            if form is RdfFormat.N_TRIPLES:
                return read_n_triples(text)
            if form is RdfFormat.JSON_LD:
                return read_json_ld(text, BASE)
            return Graph(bind_namespaces="none").parse(data=text, format="turtle", publicID=BASE)
    except CatalogError:
        raise
    except RecursionError as error:
        raise CatalogError(f"not valid {_WORDS[form]}: nested too deeply") from error
    except Exception as error:
        raise CatalogError(f"not valid {_WORDS[form]}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    words = " ".join(str(error).split())
    if place := _BAD_TURTLE.match(words):
        return f"{place['why']}, line {place['line']}"
    if not isinstance(error, (SyntaxError, ValueError)):
        words = f"its structure cannot be understood ({type(error).__name__}: {words})"
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


_LINE_END = re.compile(r"\r\n|\r|\n")


class NTriplesError(ValueError):
    """A line is not a triple; the message gives its number."""


def read_n_triples(text: str) -> Graph:
    """The graph in an N-Triples text.

    Raises:
        NTriplesError: A line is not a triple.
    """
    graph = Graph(bind_namespaces="none")
    lines = _Lines(text)
    try:
        W3CNTriplesParser(NTGraphSink(graph)).parse(cast("IO[bytes]", lines))
    except Exception as error:  # the parser can raise any error
        raise NTriplesError(f"line {lines.read_so_far} is not a triple") from error
    return graph


class _Lines:
    """A file that returns one line per read."""

    encoding = "utf-8"

    def __init__(self, text: str) -> None:
        self._lines = _LINE_END.split(text)
        self.read_so_far = 0

    def read(self, _: int) -> str:
        if self.read_so_far == len(self._lines):
            return ""
        self.read_so_far += 1
        return f"{self._lines[self.read_so_far - 1]}\n"
