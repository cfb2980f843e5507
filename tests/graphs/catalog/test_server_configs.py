from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import CatalogError, ServerConfig, agent_from_listing, load
from callsheet.graphs.catalog.formats.server_config import Configuration, read_configuration
from callsheet.graphs.lint import lint
from callsheet.graphs.sources.loading import servers_in, starts_in


def read(document: dict[str, Any], path: str | Path = "mcp.json") -> Configuration:
    return read_configuration(document, Path(path))


def servers(**entries: Any) -> dict[str, ServerConfig]:
    return dict(read({"mcpServers": entries}).servers)


def unread(**entries: Any) -> list[str]:
    return [str(problem) for problem in read({"mcpServers": entries}).problems]


HTTP_WORDS = ("http", "streamable-http", "streamable_http", "streamableHttp")
HTTP = ServerConfig(url="http://h", transport="http")


def test_server_entries_in_the_forms_of_other_clients_are_read() -> None:
    here = str(Path.cwd())
    cases = [
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
        ({"command": "x", "type": "local", "tools": ["*"]}, ServerConfig(command="x", cwd=here, transport="stdio")),
        ({"command": "x", "cwd": "../y/."}, ServerConfig(command="x", cwd=str(Path.cwd().parent / "y"))),
        ({"command": "x\ud800${/}", "more": "\udfff"}, ServerConfig(command="x?/", cwd=here, transport="stdio")),
    ]
    for entry, config in cases:
        assert servers(a=entry)["a"] == config


def test_the_servers_of_a_file_are_listed_without_starting_them(tmp_path: Path) -> None:
    for root in ("mcpServers", "servers", "context_servers"):
        path = tmp_path / "settings.json"
        path.write_text(json.dumps({"inputs": [], root: {"a": {"type": "stdio", "command": "no-such-program"}}}))
        assert servers_in(str(path))["a"].command == "no-such-program"


OFF = {
    "disabled": {"command": "x", "disabled": True},
    "enabled": {"command": "x", "enabled": False},
    "both": {"command": "x", "enabled": True, "disabled": True},
    "api": {"openapi": "api.json", "enabled": False},
    "agent": {"a2a": "https://h", "enabled": False},
    "folder": {"documents": "docs", "enabled": False},
}


def test_a_file_has_the_same_servers_by_whatever_way_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "work" / "mcp.json"
    for folder in (file.parent, tmp_path / "other"):
        folder.mkdir()
    file.write_text(json.dumps({"mcpServers": {"x": {"command": "x", "args": ["${workspaceFolder}/x.js"]}}}))
    direct = servers_in(str(file))
    monkeypatch.chdir(tmp_path / "other")
    for way in ("../work/mcp.json", "../work", f"{tmp_path}/other/../work/mcp.json", "../other/../work/"):
        assert servers_in(way) == direct, way


def test_a_disabled_server_stays_off() -> None:
    found = read({"mcpServers": {**OFF, "on": {"command": "y", "disabled": False, "enabled": True}}})
    assert (list(found.servers), found.problems) == (["on"], ())
    switches = {"allowed": ["a", "b"], "excluded": ["b"]}  # of Gemini CLI
    entries = {name: {"command": "x"} for name in "abc"}
    assert list(read({"mcp": switches, "mcpServers": entries}).servers) == ["a"]
    assert list(read({"mcp": {"serverCommand": "x"}, "mcpServers": entries}).servers) == ["a", "b", "c"]


@pytest.mark.parametrize("value", ["true", 1, None, []])
def test_a_switch_that_is_neither_true_nor_false_starts_nothing(value: object) -> None:
    found = read({"mcpServers": {"a": {"command": "x", "disabled": value}, "b": {"command": "x", "enabled": value}}})
    assert found.servers == {}
    assert [str(p).partition(" must be")[0] for p in found.problems] == ["a: 'disabled'", "b: 'enabled'"]
    found = read({"mcp": {"excluded": value}, "mcpServers": {"a": {"command": "x"}}})
    assert (len(found.servers), len(found.problems)) == ((1, 0) if value == [] else (0, 1))


def test_a_disabled_tool_is_not_offered() -> None:
    cases = [
        ({}, ["get", "put", "drop"]),
        ({"includeTools": ["get", "put"], "excludeTools": ["put"]}, ["get"]),
        ({"disabledTools": ["drop"]}, ["get", "put"]),
        ({"tools": ["get", "drop"]}, ["get", "drop"]),
        ({"tools": []}, []),
        ({"tools": ["get", "*"]}, ["get", "put", "drop"]),
    ]
    for entry, offered in cases:
        server = servers(a={"command": "x", **entry})["a"]
        assert [tool for tool in ("get", "put", "drop") if server.offers(tool)] == offered
        assert unread(a={"command": "x", **entry}) == []


def test_keys_without_effect_are_reported(tmp_path: Path) -> None:
    local = {"command": "x", "autoApprove": ["y"], "timeout": 3, "headers": {}, "source": "custom"}
    remote = {"url": "https://h", "env": {"KEY": "k"}, "trust": True}
    kit = {"toolkit": "a.B", "icon": "x"}
    assert unread(local=local, remote=remote, kit=kit, plain={"command": "x", "description": "d"}) == [
        "local: Callsheet does not read 'autoApprove', 'timeout', 'headers', 'source' of its entry (in mcp.json)",
        "remote: Callsheet does not read 'env', 'trust' of its entry (in mcp.json)",
        "kit: Callsheet does not read 'icon' of its entry (in mcp.json)",
    ]
    path = tmp_path / "mcp.json"
    path.write_text(
        json.dumps({"mcpServers": {"h": {"documents": "docs"}, "a": {"command": "no-such-program", "x": 1}}})
    )
    (tmp_path / "docs").mkdir()
    found = [(finding.rule, finding.severity.value) for finding in lint(load(path, yes=True))]
    assert ("unread-source", "warning") in found
    assert ("load-problem", "error") in found  # there is no such program


def test_a_variable_of_another_program_never_reaches_a_server() -> None:
    cases = ["${input:key}", "${config:api.key}", "${command:pick}", "${env:MY-KEY}", "${K:?no}"]
    for field in ("args", "env", "headers", "url"):
        for variable in cases:
            value: Any = {"args": (variable,), "url": f"http://h/{variable}"}.get(field, {"K": f"Bearer {variable}"})
            with pytest.raises(CatalogError, match="is filled in by another program only: write") as caught:
                ServerConfig(command="x", **{field: value}).expanded({"key": "k"})
            assert variable in str(caught.value)


def test_a_variable_in_the_form_of_another_program_is_reported_without_its_value() -> None:
    for variable in ("$MY_TOKEN", "%MY_TOKEN%", "{env:MY_TOKEN}"):
        said = "a: the variable in {!r} is not filled in: write it as ${{NAME}} (in mcp.json)"
        local = {"command": "x", "args": ["-k", variable], "env": {"KEY": variable, "PRICE": "$5", "PASSWORD": "a$b"}}
        assert unread(a=local) == [said.format("args"), said.format("KEY")]
        assert unread(a={"url": "http://h", "headers": {"KEY": f"Bearer {variable}"}}) == [said.format("KEY")]


def test_editor_variables_for_folders_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/kim")
    entry = {"command": "${userHome}/bin/x", "args": ["${workspaceFolder}${/}a", "${workspaceFolderBasename}"]}
    for file, project in ((".vscode/mcp.json", "shop"), ("mcp.json", "shop"), (".cursor/mcp.json", "shop")):
        found = read({"servers": {"a": entry}}, tmp_path / "shop" / file).servers["a"]
        assert found.command == "/srv/kim/bin/x"
        assert found.args == (f"{tmp_path}/{project}/a", project)


ENV_FILE = """# of the team
KEY="from file"
export TOKEN='a${b}$c' # not expanded
PORT=80

EMPTY=
"""


@pytest.mark.parametrize("named", ["${workspaceFolder}/.env", ".env", "${PROJECT}/.env"])
def test_an_env_file_is_read_and_its_names_are_shown_for_consent(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROJECT", str(tmp_path))
    (tmp_path / ".env").write_text(ENV_FILE)
    (tmp_path / ".vscode").mkdir()
    path = tmp_path / ".vscode" / "mcp.json"
    entry = {"command": "x", "envFile": named, "env": {"PORT": "${PORT:-443}"}}
    path.write_text(json.dumps({"servers": {"a": entry}}))
    server = servers_in(str(path))["a"]
    assert server.expanded({}).env == {"KEY": "from file", "TOKEN": "a${b}$c", "PORT": "443", "EMPTY": ""}
    assert [start.names for start in starts_in(str(path))] == [("EMPTY=", "KEY", "PORT from ${PORT}", "TOKEN")]
    (tmp_path / ".env").write_text("NODE_OPTIONS=--require ./evil.js\n")
    path.write_text(json.dumps({"servers": {"a": {"command": "node", "envFile": named}}}))
    assert [start.names for start in starts_in(str(path))] == [("NODE_OPTIONS=--require ./evil.js",)]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere.env", "nowhere.env is not a file"),
        ("huge.env", "is not a file of at most 1,000 KB"),
        ("latin.env", "cannot be read: 'utf-8' codec"),
        ("broken.env", "has a line that is not NAME=value: line 2"),
        ("bare.env", "has a line that is not NAME=value: line 1"),
        ("${NOT_SET}/.env", "the variable NOT_SET is not set"),
        (3, "'envFile' must be the path of a file"),
    ],
)
def test_an_env_file_that_cannot_be_read_leaves_its_server_out(named: object, said: str, tmp_path: Path) -> None:
    files = {"huge": b"#" * 1_000_001, "latin": b"A=\xe9", "broken": b"A=1\nno line\n", "bare": b"KEY\n"}
    for name, content in files.items():
        (tmp_path / f"{name}.env").write_bytes(content)
    entries = {"a": {"command": "x", "envFile": named}, "b": {"command": "y"}}
    found = read({"mcpServers": entries}, tmp_path / "mcp.json")
    assert list(found.servers) == ["b"]
    assert said in str(found.problems[0])


def test_comments_and_trailing_commas_in_a_configuration_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    text = """// of the team
    {
      "servers": { /* two, "of" // these */
        "a": {"command": "x", "args": ["https://h//*no*/", "a,]", "say \\"// no\\",}", ], }, // ours
        // "b": {"command": "y"},
      },
    }"""
    path.write_text(text)
    assert servers_in(str(path))["a"].args == ("https://h//*no*/", "a,]", 'say "// no",}')
    path.write_text(f"{text[:-1]} // )\n]")
    with pytest.raises(CatalogError, match=r"not valid JSON: .* line 8 column 1"):
        load(path)
    for text in ('{"a": 1,, }', '{"a": 1 /* ', '{"a": 1} // "\n}'):
        path.write_text(text)
        with pytest.raises(CatalogError, match="not valid JSON"):
            load(path)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "needs either a 'command' or a 'url'"),
        ({"command": "x", "url": "http://h"}, "needs either a 'command' or a 'url'"),
        ("x", "must be an object"),
        ({"command": "x", "type": "pipe"}, "unknown transport 'pipe': use stdio, http or sse"),
        ({"command": "x", "type": ["stdio"]}, "unknown transport ['stdio']"),
        ({"command": "x", "type": "http"}, "declares the transport 'http' but has a command"),
        ({"url": "http://h", "type": "stdio"}, "declares the transport 'stdio' but has a url"),
        ({"command": ["x"]}, "command: Input should be a valid string"),
        *(({key: "~nobody-of-this-name/x"}, "home directory") for key in ("documents", "openapi")),
        ({"command": "x", "envFile": "~nobody-of-this-name/x"}, "home directory"),
        ({"documents": "a\0b"}, "null byte"),
        ({"command": "x", "more": json.loads("[" * 300 + "]" * 300)}, "nested more than 100 levels deep"),
        ({"command": "x", "args": "y"}, "args: Input should be"),
        ({"command": "x", "env": {"PORT": 80}}, "env.PORT: Input should be"),
        ({"command": "x", "env": []}, "env: Input should be"),
        ({"url": 3}, "url: Input should be"),
        ({"a2a": 3}, "url: Input should be"),
        ({"a2a": "http://h", "url": "http://h"}, "leave out 'url'"),
        ({"a2a": "http://h", "command": "uvx"}, "leave out 'command'"),
        ({"a2a": "http://h", "headers": {"a": 1}}, "headers.a: "),
        ({"a2a": "http://h", "callsheet": {"trusted": True}}, "'trusted' of 'callsheet' does not apply"),
        ({"a2a": "http://h", "callsheet": {"rest": 1}}, "Extra inputs are not permitted"),
        ({"a2a": "http://h", "callsheet": 1}, "callsheet: Input should be"),
        ({"openapi": 3}, "'openapi' must be the file or the address"),
        ({"openapi": "s.json", "command": "uvx"}, "leave out 'command'"),
        ({"openapi": "s.json", "headers": {"a": "b"}}, "need an address to which they may be sent: name it as 'url'"),
        ({"openapi": "s.json", "url": "ftp://h"}, "must be an address with http:// or https://"),
        ({"openapi": "s.json", "callsheet": {"roots": ["/"]}}, "'roots' of 'callsheet' does not apply"),
        ({"toolkit": "a.B", "command": "x"}, "leave out 'command'"),
        ({"toolkit": "a.B", "callsheet": {"trusted": True}}, "'trusted' of 'callsheet' does not apply"),
        ({"toolkit": "Kit"}, "import path of its class"),
        ({"toolkit": "a.b:c"}, "import path of its class"),
        ({"toolkit": "a.B", "arguments": ["work"]}, "'arguments' must be an object"),
    ],
)
def test_an_entry_that_cannot_work_is_left_out_and_named_with_the_reason(entry: object, said: str) -> None:
    found = read({"mcpServers": {"broken": entry, "good": {"command": "x"}}})
    assert list(found.servers) == ["good"]
    (problem,) = found.problems
    assert (problem.agent, problem.kind) == ("broken", "malformed")
    assert problem.message.endswith(" (in mcp.json)")
    assert said in problem.message


def test_servers_must_be_an_object_by_name() -> None:
    for document in ({"mcpServers": []}, {"servers": None}, {}):
        with pytest.raises(CatalogError, match="'mcpServers' must be an object of servers by name"):
            read(document)


def test_variables_are_filled_in_everywhere_and_once() -> None:
    config = ServerConfig(
        command="${BIN}",
        args=("--key=${KEY}",),
        env={"K": "${env:KEY}"},
        cwd="${HOME_DIR}",
        headers={"A": "Bearer ${KEY}"},
    )
    filled = config.expanded({"BIN": "uvx", "KEY": "k${BIN}", "HOME_DIR": "/h"})
    assert (filled.command, filled.args, filled.cwd) == ("uvx", ("--key=k${BIN}",), "/h")
    assert (filled.env, filled.headers) == ({"K": "k${BIN}"}, {"A": "Bearer k${BIN}"})
    with pytest.raises(CatalogError, match=r"the variable KEY is not set: set it in the environment"):
        config.expanded({})


def test_variables_have_defaults_and_other_dollar_signs_stay() -> None:
    cases = [
        ("${HOST:-localhost}", "localhost"),
        ("${HOST:-}", ""),
        ("${SET:-other}", "here"),
        ("http://${HOST:-h}:${PORT:-80}/mcp", "http://h:80/mcp"),
        ("$SET {SET} ${}", "$SET {SET} ${}"),
        ("${SET}${SET}", "herehere"),
    ]
    for text, filled in cases:
        assert ServerConfig(url=text, transport="http").expanded({"SET": "here"}).url == filled


def test_other_sources_start_no_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text('{"name": "a", "tools": []}')
    for source in ("package:thing", "no/such/file.json", ".", "m.json"):
        assert servers_in(source) == {}


def test_a_listing_with_an_odd_meta_still_reads() -> None:
    for meta in (None, [], "x", {}, {"callsheet/core": "yes"}):
        agent, problems = agent_from_listing("a", [{"name": "x", "_meta": meta, "annotations": 3, "outputSchema": "y"}])
        assert not problems
        (tool,) = agent.tools
        assert (tool.core, tool.depends_on, tool.annotations, tool.output_schema) == (False, (), {}, None)


def test_a_malformed_dependency_leaves_its_tool_out_by_name() -> None:
    cases = [
        "y",
        ["y"],
        [{"tool": "y"}],
        [{"tool": "y", "kind": "often"}],
        [{"tool": "y", "kind": "tool_directly", "w": 1}],
    ]
    for edges in cases:
        listing = [{"name": "x", "_meta": {"callsheet/depends_on": edges}}, {"name": "y"}]
        agent, problems = agent_from_listing("a", listing)
        assert [tool.name for tool in agent.tools] == ["y"]
        assert [problem.agent for problem in problems] == ["a"]
        assert "tool 'x': callsheet/depends_on" in str(problems[0])
