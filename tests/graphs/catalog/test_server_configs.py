from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import CatalogError, ServerConfig, agent_from_listing
from callsheet.graphs.catalog.formats.server_config import read_servers
from callsheet.graphs.catalog.loading import servers_in


def servers(**entries: Any) -> dict[str, ServerConfig]:
    return read_servers({"mcpServers": entries}, "mcp.json")


HTTP_WORDS = ("http", "streamable-http", "streamable_http", "streamableHttp")
HTTP = ServerConfig(url="http://h", transport="http")


@pytest.mark.parametrize(
    ("entry", "config"),
    [
        (
            {"command": "uvx", "args": ["mcp-git"], "env": {"A": "1"}, "cwd": "/tmp"},
            ServerConfig(command="uvx", args=("mcp-git",), env={"A": "1"}, cwd="/tmp", transport="stdio"),
        ),
        (
            {"url": "https://h/mcp", "headers": {"Authorization": "Bearer x"}},
            ServerConfig(url="https://h/mcp", headers={"Authorization": "Bearer x"}, transport="http"),
        ),
        *(({key: "http://h"}, HTTP) for key in ("url", "serverUrl", "httpUrl")),
        *(
            ({"url": "http://h", key: word}, HTTP.model_copy(update={"transport": transport}))
            for key in ("type", "transport")
            for word, transport in [("sse", "sse"), *((word, "http") for word in HTTP_WORDS)]
        ),
        (
            {"command": "x", "autoApprove": ["y"], "timeout": 3, "gallery": True},
            ServerConfig(command="x", transport="stdio"),
        ),
    ],
)
def test_entries_as_clients_write_them(entry: dict[str, Any], config: ServerConfig) -> None:
    assert servers(a=entry)["a"] == config


def test_vs_code_calls_them_servers() -> None:
    document = {"inputs": [], "servers": {"a": {"type": "stdio", "command": "x"}}}
    assert read_servers(document, "mcp.json")["a"].command == "x"


def test_a_disabled_server_is_left_out() -> None:
    found = servers(off={"command": "x", "disabled": True}, on={"command": "y", "disabled": False})
    assert list(found) == ["on"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "needs either a 'command' or a 'url'"),
        ({"command": "x", "url": "http://h"}, "needs either a 'command' or a 'url'"),
        ("x", "must be an object"),
        ({"command": "x", "type": "pipe"}, "unknown transport 'pipe': use stdio, http or sse"),
        ({"command": "x", "type": ["stdio"]}, "unknown transport ['stdio']"),
        ({"command": "x", "type": "http"}, "says 'http' but has a command"),
        ({"url": "http://h", "type": "stdio"}, "says 'stdio' but has a url"),
        ({"command": ["x"]}, "command: must be a string"),
        ({"command": "x", "args": "y"}, "args: must be a list"),
        ({"command": "x", "env": {"PORT": 80}}, "env.PORT: must be a string"),
        ({"command": "x", "env": []}, "env: must be an object"),
        ({"url": 3}, "url: must be a string"),
    ],
)
def test_a_server_that_cannot_work_is_named_with_the_reason(entry: object, said: str) -> None:
    with pytest.raises(CatalogError) as caught:
        servers(broken=entry)
    assert str(caught.value).startswith("mcp.json: server 'broken'")
    assert said in str(caught.value)


@pytest.mark.parametrize("document", [{"mcpServers": []}, {"servers": None}, {}])
def test_servers_must_be_an_object_by_name(document: dict[str, Any]) -> None:
    with pytest.raises(CatalogError, match="'mcpServers' must be an object of servers by name"):
        read_servers(document, "mcp.json")


def test_variables_are_filled_in_everywhere() -> None:
    config = ServerConfig(
        command="${BIN}",
        args=("--key=${KEY}",),
        env={"K": "${env:KEY}"},
        cwd="${HOME_DIR}",
        headers={"A": "Bearer ${KEY}"},
    )
    filled = config.expanded({"BIN": "uvx", "KEY": "k", "HOME_DIR": "/h"})
    assert (filled.command, filled.args, filled.cwd) == ("uvx", ("--key=k",), "/h")
    assert (filled.env, filled.headers) == ({"K": "k"}, {"A": "Bearer k"})


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${HOST:-localhost}", "localhost"),
        ("${HOST:-}", ""),
        ("${SET:-other}", "here"),
        ("http://${HOST:-h}:${PORT:-80}/mcp", "http://h:80/mcp"),
        ("$SET {SET} ${}", "$SET {SET} ${}"),
        ("${SET}${SET}", "herehere"),
    ],
)
def test_defaults_and_what_is_no_variable(text: str, filled: str) -> None:
    assert ServerConfig(url=text, transport="http").expanded({"SET": "here"}).url == filled


def test_a_value_is_not_expanded_again() -> None:
    assert ServerConfig(command="${A}").expanded({"A": "${B}"}).command == "${B}"


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(CatalogError, match=r"the variable KEY is not set: set it in the environment"):
        ServerConfig(command="x", env={"K": "${KEY}"}).expanded({})


def test_the_servers_of_a_file_are_told_without_starting_them(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "no-such-program"}}}))
    assert list(servers_in(str(path))) == ["a"]


@pytest.mark.parametrize("source", ["package:thing", "no/such/file.json", ".", "m.json"])
def test_other_sources_start_no_servers(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text('{"name": "a", "tools": []}')
    assert servers_in(source) == {}


@pytest.mark.parametrize("meta", [None, [], "x", {}, {"callsheet/core": "yes"}])
def test_a_listing_with_an_odd_meta_still_reads(meta: object) -> None:
    agent, problems = agent_from_listing("a", [{"name": "x", "_meta": meta, "annotations": 3, "outputSchema": "y"}])
    assert not problems
    (tool,) = agent.tools
    assert (tool.core, tool.depends_on, tool.annotations, tool.output_schema) == (False, (), {}, None)


@pytest.mark.parametrize(
    "edges",
    ["y", ["y"], [{"tool": "y"}], [{"tool": "y", "kind": "often"}], [{"tool": "y", "kind": "tool_directly", "w": 1}]],
)
def test_a_malformed_dependency_leaves_its_tool_out_by_name(edges: object) -> None:
    listing = [{"name": "x", "_meta": {"callsheet/depends_on": edges}}, {"name": "y"}]
    agent, problems = agent_from_listing("a", listing)
    assert [tool.name for tool in agent.tools] == ["y"]
    assert [problem.agent for problem in problems] == ["a"]
    assert "tool 'x': callsheet/depends_on" in str(problems[0])
