"""Server Cards, AI Catalogs and ``server.json`` of every sort: no error of ours, and no entry with what nobody sees."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, strategies as st

from callsheet.graphs import CatalogError
from callsheet.graphs.catalog.formats.card_entries import Way, ways_of
from callsheet.graphs.catalog.formats.config_edit import with_entry
from callsheet.graphs.catalog.formats.manifests import parse_json
from callsheet.graphs.catalog.formats.server_cards import CARD, CardEntry, cards_in, linked_cards, with_linked_cards
from callsheet.graphs.catalog.formats.server_config import variables_in
from callsheet.graphs.text.hidden import hidden_in
from callsheet.graphs.text.unicode import strings_in
from fuzzing import anything, fuzzed, mutated

KEY = {"name": "KEY", "description": "Your key.", "isRequired": True, "isSecret": True, "choices": ["a"]}
WITH = {"name": "Authorization", "value": "Bearer {token}", "variables": {"token": {"isRequired": True}}}
ARGUMENTS = [
    {"type": "named", "name": "--mode", "value": "{mode}", "variables": {"mode": {"default": "read"}}},
    {"type": "positional", "valueHint": "folder", "isRequired": True},
]
PACKAGE = {
    "registryType": "npm",
    "registryBaseUrl": "https://registry.npmjs.org",
    "identifier": "@example/files",
    "version": "1.0.0",
    "runtimeHint": "npx",
    "transport": {"type": "stdio"},
    "runtimeArguments": ARGUMENTS,
    "packageArguments": ARGUMENTS,
    "environmentVariables": [KEY],
}
REMOTE = {
    "type": "streamable-http",
    "url": "https://{region}.example.com/mcp",
    "variables": {"region": {"choices": ["eu", "us"], "isRequired": True}},
    "headers": [WITH, KEY],
}
SERVER = {
    "name": "com.example/files",
    "version": "1.0.0",
    "description": "Reads files.",
    "title": "Files",
    "remotes": [REMOTE],
    "packages": [PACKAGE, {**PACKAGE, "registryType": "oci", "identifier": "example/files"}],
}
ANSWER = {"server": SERVER, "_meta": {"io.modelcontextprotocol.registry/official": {"status": "active"}}}
ENTRY = {"identifier": "urn:air:example.com:files", "type": CARD}
CATALOG = {"specVersion": "1.0", "entries": [{**ENTRY, "data": SERVER}, {**ENTRY, "url": "/files/server-card"}]}
documents = mutated(SERVER) | mutated(ANSWER) | mutated(CATALOG) | anything


def plain(way: Way) -> None:
    """An entry has only what a person sees, and refers to nothing but what is told."""
    texts = list(strings_in(way.entry))
    assert all(text.isprintable() and not hidden_in(text) for text in texts)
    named = {name for text in texts for name in variables_in(text)}
    assert named == {need.variable for need in way.needs}
    assert way.entry.get("command", "npx") in ("npx", "uvx", "dnx", "docker")
    after = with_entry('{"mcpServers": {}}', "new", way.entry, "mcp.json")
    assert parse_json(after.encode(), "x") == {"mcpServers": {"new": way.entry}}


def read(content: bytes) -> None:
    found: tuple[CardEntry, ...] | None = ()
    with suppress(CatalogError):
        found = cards_in(content, "https://example.com")
    for entry in found or ():
        assert entry.name.isprintable()
        assert entry.card is not None or entry.error
        if entry.card is not None:
            ways = ways_of(entry.card, "FILES")
            assert all(reason.isprintable() for reason in ways.refused)
            for way in ways.usable:
                plain(way)


@fuzzed(60)
@given(document=documents)
def test_documents_of_every_sort_are_read_or_refused(document: Any) -> None:
    content = json.dumps(document).encode()
    read(content)
    links = linked_cards(content, "https://example.com")
    if links:
        read(with_linked_cards(content, "https://example.com", dict.fromkeys(links, json.dumps(SERVER).encode())))
        read(with_linked_cards(content, "https://example.com", dict.fromkeys(links, "it was not fetched")))


@fuzzed(30)
@given(content=st.binary(max_size=200))
def test_bytes_of_every_sort_are_no_card(content: bytes) -> None:
    read(content)
    assert linked_cards(content, "https://example.com") == ()
