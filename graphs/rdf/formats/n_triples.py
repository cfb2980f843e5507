"""Reads N-Triples line by line. rdflib's own reader takes quadratic time for long lines."""

from __future__ import annotations

import re
from typing import IO, cast

from rdflib import Graph
from rdflib.plugins.parsers.ntriples import NTGraphSink, W3CNTriplesParser

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
