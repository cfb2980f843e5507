"""Entries of an ``mcp.json`` from ``server.json``: commands of each kind of package; texts that get one more entry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callsheet.graphs import CatalogError
from callsheet.graphs.catalog.formats.card_entries import Way, ways_of
from callsheet.graphs.catalog.formats.config_edit import with_entry
from callsheet.graphs.catalog.formats.manifests import parse_json
from callsheet.graphs.catalog.formats.server_cards import cards_in

ENTRY = {"command": "x", "args": ["ü"]}


def way(**package: Any) -> Way:
    about = {"name": "com.example/files", "version": "1", "packages": [{"version": "1.0.2", **package}]}
    (entry,) = cards_in(json.dumps(about).encode(), "server.json") or ()
    assert entry.card is not None
    ways = ways_of(entry.card, "files")
    assert ways.refused == ()
    return ways.usable[0]


@pytest.mark.parametrize(
    ("kind", "identifier", "line"),
    [
        ("npm", "@example/files", "npx -y @example/files@1.0.2"),
        ("pypi", "mcp-files", "uvx mcp-files@1.0.2"),
        ("nuget", "Example.Files", "dnx Example.Files@1.0.2 --yes --"),
        ("oci", "docker.io/example/files", "docker run -i --rm docker.io/example/files:1.0.2"),
        ("oci", "ghcr.io:443/example/files:2.0", "docker run -i --rm ghcr.io:443/example/files:2.0"),
    ],
)
def test_each_kind_of_package_has_its_command(kind: str, identifier: str, line: str) -> None:
    entry = way(registryType=kind, identifier=identifier).entry
    assert " ".join([entry["command"], *entry["args"]]) == line


def test_arguments_have_values_defaults_and_references() -> None:
    runtime = [
        {"type": "named", "name": "-i"},
        {
            "type": "named",
            "name": "--mount",
            "value": "type=bind,src={source},dst={target},note={other}",
            "variables": {"source": {"description": "The folder.", "isRequired": True}, "target": {"default": "/data"}},
        },
    ]
    own = [
        {"type": "positional", "valueHint": "folder", "default": "/data"},
        {"type": "named", "name": "--mode", "isRequired": True, "choices": ["read", "write"]},
        {"type": "named", "name": "--quiet", "value": ""},
        {"type": "positional", "valueHint": "more"},
    ]
    env = [{"name": "LOG_LEVEL", "default": "info"}, {"name": "API_KEY", "isRequired": True, "isSecret": True}]
    names = {"runtimeArguments": runtime, "packageArguments": own, "environmentVariables": env}
    found = way(registryType="oci", identifier="example/files", **names)
    mount = "type=bind,src=${FILES_SOURCE},dst=/data,note={other}"
    words = ["run", "-i", "--rm", "--mount", mount, "-e", "LOG_LEVEL", "-e", "API_KEY", "example/files:1.0.2"]
    assert found.entry["args"] == [*words, "/data", "--mode", "${FILES_MODE}", "--quiet"]
    assert found.entry["env"] == {"LOG_LEVEL": "info", "API_KEY": "${API_KEY}"}
    needs = {need.variable: (need.what, need.secret) for need in found.needs}
    assert needs == {
        "API_KEY": ("API_KEY", True),
        "FILES_SOURCE": ("The folder.", False),
        "FILES_MODE": ("mode (one of read, write)", False),
    }
    assert found.optional == ("i", "more")


def test_values_whose_names_differ_only_in_odd_characters_have_variables_of_their_own() -> None:
    own = [{"type": "positional", "valueHint": hint, "isRequired": True} for hint in ("a-b", "a.b", "ü", "a-b")]
    assert way(registryType="pypi", identifier="files", packageArguments=own).entry["args"][1:] == [
        "${FILES_A_B}",
        "${FILES_A_B_2}",
        "${FILES}",
        "${FILES_A_B}",
    ]


TEXTS = {
    "nothing": "",
    "no servers": "{}",
    "other keys": '{"inputs": []}',
    "one line": '{"mcpServers": {"a": {"command": "a"}}}',
    "empty": '{\n  "mcpServers": {}\n}\n',
    "tabs": '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}',
    "trailing comma": '{"mcpServers": {\n    "a": {},\n  },\n}',
    "trailing comma and comment": '{\n  "mcpServers": {\n    "a": {}, // , }\n  }, /* } */\n}',
    "comment at the end": '{\n  "mcpServers": {\n    "a": {} // the last one\n    // and a note\n  }\n}',
    "comment in an empty object": '{"mcpServers": { // none yet\n}}',
    "braces in texts": '{"a": "}{,//", "mcpServers": {"b": {"args": ["}", "\\"}"]}}}',
    "windows": '{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n',
    "byte order mark": '\ufeff{"mcpServers": {"a": {}}}',
    "the key twice": '{"mcpServers": {"lost": {}}, "mcpServers": {"a": {}}}',
    "the key inside": '{"x": {"mcpServers": {}}, "mcpServers": {"a": {}}}',
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_text_gets_one_more_entry_and_keeps_the_rest(what: str) -> None:
    text = TEXTS[what]
    after = with_entry(text, "new", ENTRY, "mcp.json")
    before: Any = parse_json(text.encode(), "x") if text else {}
    servers = before.get("mcpServers", {})
    assert parse_json(after.encode(), "x") == {**before, "mcpServers": {**servers, "new": ENTRY}}
    left = iter(after)
    assert all(character in left for character in text)
    assert ("\r\n" in text) == ("\r\n" in after)
    assert after.count("\n") == after.count("\r\n") or "\r\n" not in text
    again = with_entry(after, "newer", ENTRY, "mcp.json")
    assert list(parse_json(again.encode(), "x")["mcpServers"]) == [*servers, "new", "newer"]


@pytest.mark.parametrize("text", ["[]", "7", '{"mcpServers": 7}', "{", '{"mcpServers": {"new": {}}}'])
def test_a_text_that_cannot_get_the_entry_is_refused(text: str) -> None:
    with pytest.raises(CatalogError):
        with_entry(text, "new", ENTRY, "mcp.json")
