"""JSON-LD that leaves its context to another document: nothing is fetched, however the document is referred to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from callsheet import CatalogError
from callsheet.graphs.rdf import RdfFormat, from_rdf, read_rdf

# Where a context may stand, and how it may be referred to; REMOTE is the address of another document.
DOCUMENTS: dict[str, Any] = {
    "plain": {"@context": "REMOTE"},
    "list": {"@context": [{}, "REMOTE"]},
    "list in a list": {"@context": [["REMOTE"]]},
    "deep list": {"@context": [{}, [[["REMOTE"]]]]},
    "context in a context": {"@context": {"@context": {"@context": ["REMOTE"]}}},
    "list in a context in a list": {"@context": [{"@context": [["REMOTE"]]}]},
    "import": {"@context": {"@import": "REMOTE"}},
    "import in a list": {"@context": [[{"@import": "REMOTE"}]]},
    "node": {"@graph": [{"@id": "a:b", "@context": [["REMOTE"]]}]},
    "below an empty context": {"@id": "a:a", "a:x": {"@context": None, "a:y": {"@context": [["REMOTE"]], "a:z": 1}}},
    "term": {"@context": {"x": {"@id": "a:x", "@context": [["REMOTE"]]}}, "@id": "a:a", "x": {"@id": "a:c"}},
    "type": {"@context": {"T": {"@id": "a:T", "@context": [["REMOTE"]]}}, "@id": "a:a", "@type": "T"},
    "second document": [{"@id": "a:b"}, {"@context": [["REMOTE"]], "@id": "a:c"}],
}


class Served:
    """A server that counts what it is asked for, and a file with a context."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        context = {"@context": {"name": "https://example.org/name"}}
        body = json.dumps(context).encode()
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.send_header("content-type", "application/ld+json")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name that the library calls)
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        file = folder / "context.jsonld"
        file.write_bytes(body)
        self.addresses = {
            "http": f"http://127.0.0.1:{self.http.server_port}/context.jsonld",
            "file": file.as_uri(),
            "path": str(file),
        }


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    found = Served(tmp_path)
    thread = threading.Thread(target=found.http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield found
    found.http.shutdown()
    thread.join()
    found.http.server_close()


@pytest.mark.parametrize("kind", ["http", "file", "path"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_context_is_not_fetched_wherever_it_stands(served: Served, tmp_path: Path, name: str, kind: str) -> None:
    text = json.dumps(DOCUMENTS[name]).replace("REMOTE", served.addresses[kind])
    with pytest.raises(CatalogError, match=r"its @context is at .*, which is not fetched"):
        from_rdf(text, form=RdfFormat.JSON_LD)
    (tmp_path / "catalog.jsonld").write_text(text)
    with pytest.raises(CatalogError, match="which is not fetched"):
        read_rdf(tmp_path / "catalog.jsonld")
    assert served.asked == []


def test_rdflib_itself_still_fetches_for_the_rest_of_the_program(served: Served) -> None:
    from rdflib import Graph

    with pytest.raises(CatalogError):
        from_rdf(json.dumps({"@context": served.addresses["http"]}), form=RdfFormat.JSON_LD)
    document = {"@context": served.addresses["http"], "@id": "https://example.org/a", "name": "a"}
    assert len(Graph().parse(data=json.dumps(document), format="json-ld")) == 1
    assert served.asked == ["/context.jsonld"]
