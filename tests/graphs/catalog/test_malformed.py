from __future__ import annotations

import json
from pathlib import Path

import pytest

from callsheet.graphs import CatalogError, load

SERVER = {"command": "x"}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("mcp.json", "", "the file is empty"),
        ("mcp.json", " \n", "the file is empty"),
        ("mcp.json", '{"mcpServers": {"a": {"command": "x"},}}', "remove the comma after the last entry"),
        ("mcp.json", '{"mcpServers": {"a": {"command": "x", "args": ["y",\n]}}}', "remove the comma"),
        ("mcp.json", '{"mcpServers": {\n// mine\n"a": {"command": "x"}}}', "JSON has no comments: remove it"),
        ("mcp.json", '{"mcpServers": {"a": {"command": "x"} "b": {}}}', "not valid JSON: Expecting ',' delimiter"),
        ("mcp.yaml", "mcpServers:\n  a: {}\n", "catalogs are JSON, not YAML"),
        ("mcp.json", json.dumps({"mcpservers": {"a": SERVER}}), "for 'mcpservers' write 'mcpServers'"),
        ("mcp.json", json.dumps({"mcp_servers": {"a": SERVER}}), "for 'mcp_servers' write 'mcpServers'"),
        ("mcp.json", json.dumps({"a": SERVER, "b": {"url": "http://h"}}), 'put the servers into {"mcpServers": {...}}'),
        ("mcp.json", "{}", "expected 'mcpServers' (or 'servers')"),
        ("mcp.json", json.dumps({"mcpServers": {"a": {"command": "x", "args": "y"}}}), "args: must be a list"),
        ("mcp.json", json.dumps({"mcpServers": {"a": {"command": "x", "env": []}}}), "env: must be an object"),
        ("mcp.json", json.dumps({"mcpServers": {"a": {"command": "x", "env": {"N": 1}}}}), "env.N: must be a string"),
    ],
)
def test_a_file_that_is_no_catalog_says_what_to_do(name: str, text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CatalogError) as raised:
        load(tmp_path / name, yes=True)
    assert words in str(raised.value)
    assert str(tmp_path / name) in str(raised.value)
