"""``callsheet check``, ``--policy`` and ``--pins`` as a person or a script uses them."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs.storage import cache_folder
from commands import Cli

FAULTY: dict[str, Any] = {
    "name": "faulty",
    "tools": [
        {"name": "x", "description": "Adds.\u202e", "inputSchema": {"type": "objekt"}},
        {
            "name": "y",
            "description": "\x1b]0;owned\x07Adds \x1b[31mtwo[/] [bold]numbers",
            "inputSchema": {"type": "object"},
        },
        {"name": "\x1b[2Jz", "inputSchema": {"type": "object"}},
    ],
}
SOUND: dict[str, Any] = {"name": "sums", "tools": [{"name": "add", "description": "Adds two.", "inputSchema": {}}]}


@pytest.fixture
def check(tmp_path: Path, cli: Cli) -> Callable[..., tuple[int, str, str]]:
    def run(*manifests: dict[str, Any] | str, arguments: tuple[str, ...] = ()) -> tuple[int, str, str]:
        folder = tmp_path / "manifests"
        folder.mkdir(exist_ok=True)
        for i, manifest in enumerate(manifests):
            (folder / f"{i}.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
        found: tuple[int, str, str] = cli("check", "--catalog", folder, *arguments)
        return found

    return run


def test_errors_end_with_1_and_are_listed(check: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = check(FAULTY, SOUND, arguments=("--json",))
    report = json.loads(out)
    assert (status, err, report["passed"]) == (1, "", False)
    first = report["findings"][0]
    assert first == {
        "severity": "error",
        "agent": "faulty",
        "tool": "faulty/x",
        "rule": "hidden-text",
        "message": "its description has 1 bidirectional characters that are invisible: remove them at the source",
    }
    assert {finding["rule"] for finding in report["findings"]} >= {"invalid-schema", "empty-description"}
    assert report["counts"]["error"] == sum(finding["severity"] == "error" for finding in report["findings"])


@pytest.mark.parametrize(("fail_on", "status"), [("error", 0), ("warning", 0), ("info", 1)])
def test_the_severity_that_fails_a_check_is_an_option(
    check: Callable[..., tuple[int, str, str]], fail_on: str, status: int
) -> None:
    ended, out, _ = check(SOUND, arguments=("--fail-on", fail_on))
    assert ended == status
    assert "info undescribed-agent (1)" in out
    assert out.endswith("1 agent, 1 tool: 0 errors, 0 warnings, 1 info\n")


def test_people_see_findings_by_rule_the_gravest_first_and_nothing_hidden(
    check: Callable[..., tuple[int, str, str]],
) -> None:
    status, out, _ = check(FAULTY)
    headings = [line for line in out.splitlines() if not line.startswith(" ")]
    assert status == 1
    assert headings[0] == "error hidden-text (3)"
    assert headings[-2].startswith("info")
    assert "\x1b" not in out
    assert "  faulty/z: has no description" in out


def test_many_findings_of_a_rule_are_cut_unless_all_are_wanted(check: Callable[..., tuple[int, str, str]]) -> None:
    many = {"name": "many", "tools": [{"name": f"t{i}", "inputSchema": {}} for i in range(9)]}
    _, out, _ = check(many)
    assert "  and 4 more: --all shows them" in out
    _, out, _ = check(many, arguments=("--all",))
    assert "many/t8: has no description" in out
    assert "more:" not in out


def test_a_rule_can_be_left_out_but_must_exist(check: Callable[..., tuple[int, str, str]]) -> None:
    assert check(SOUND, arguments=("--fail-on", "info", "--ignore", "undescribed-agent"))[0] == 0
    status, _, err = check(SOUND, arguments=("--ignore", "nonsense"))
    assert status == 2
    assert "there is no rule 'nonsense'; there are load-problem, " in err


def test_a_malformed_manifest_a_circle_and_five_megabytes_give_one_line_each(
    check: Callable[..., tuple[int, str, str]],
) -> None:
    needs = {name: [{"tool": other, "kind": "tool_directly"}] for name, other in (("p", "q"), ("q", "p"))}
    circle = [
        {"name": name, "description": name * 9, "_meta": {"callsheet/depends_on": d}} for name, d in needs.items()
    ]
    big = {"name": "big", "description": "Adds 数字. " * 600_000, "inputSchema": {}}
    status, out, err = check('{"name": "cut off', {"name": "a", "tools": [*circle, big]}, arguments=("--json",))
    found = {f["rule"]: f["message"] for f in json.loads(out)["findings"] if f["severity"] != "info"}
    assert (status, err) == (1, "")
    assert set(found) == {"load-problem", "dependency-cycle", "long-text"}
    assert "0.json: not valid JSON: Unterminated string" in found["load-problem"]
    assert "a/p -> a/q -> a/p" in found["dependency-cycle"]
    assert "5,400,000 characters" in found["long-text"]
    assert all(len(message) < 300 and "\n" not in message for message in found.values())


def test_check_of_a_file_that_is_no_catalog_ends_with_status_2(
    check: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    status, out, err = check("[", arguments=("--json",))
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1


def test_check_knows_the_capabilities_of_the_option_taxonomy(
    check: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    tool = {"name": "x", "description": "Adds.", "inputSchema": {}, "_meta": {"callsheet/capabilities": ["sums"]}}
    own = {"id": "sums", "name": "Sums", "definition": "Adds numbers.", "examples": ["add two", "total"]}
    (tmp_path / "own.json").write_text(json.dumps({"capabilities": [own]}))
    assert check({"name": "a", "tools": [tool]})[0] == 1
    assert check({"name": "a", "tools": [tool]}, arguments=("--taxonomy", str(tmp_path / "own.json")))[0] == 0


NEEDED = "customer invoice ticket project folder channel meeting parcel patient vehicle contract shelf".split()
GIVEN = {
    "names": [{"name": f"get_{noun}_id", "inputSchema": {}} for noun in NEEDED],
    "one result": [
        {
            "name": "get_everything",
            "description": "Returns all ids.",
            "inputSchema": {},
            "outputSchema": {"properties": {f"{noun}_id": {"type": "string"} for noun in NEEDED}},
        }
    ],
}


@pytest.mark.parametrize("tools", GIVEN.values(), ids=list(GIVEN))
def test_an_agent_that_would_be_the_source_of_many_others_arguments_is_found(
    check: Callable[..., tuple[int, str, str]], tools: list[dict[str, Any]]
) -> None:
    def needing(noun: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {f"{noun}_id": {"type": "string"}}, "required": [f"{noun}_id"]}
        return {"name": f"{noun}s", "tools": [{"name": f"close_{noun}", "inputSchema": schema}]}

    honest = [needing(noun) for noun in NEEDED]
    for agents, expected in (
        ([*honest[:3], {"name": "evil", "tools": tools}], []),
        ([*honest, {"name": "evil", "tools": tools}], ["evil"]),
    ):
        found = json.loads(check(*agents, arguments=("--json",))[1])["findings"]
        assert [one["agent"] for one in found if one["rule"] == "source-of-many"] == expected


def test_rdf_is_checked_with_the_option_rdf_only(check: Callable[..., tuple[int, str, str]]) -> None:
    tool = {"name": "x", "description": "Adds.", "inputSchema": {}, "_meta": {"callsheet/capabilities": ["sums"]}}
    ignored = ("--ignore", "unknown-capability")
    assert check({"name": "a", "tools": [tool]}, arguments=ignored)[0] == 0
    _, out, _ = check({"name": "a", "tools": [tool]}, arguments=(*ignored, "--rdf", "--json"))
    found = {finding["rule"]: finding for finding in json.loads(out)["findings"]}
    assert found["integrity-defined"]["tool"] == "a/x"
    assert "'sums'" in found["integrity-defined"]["message"]


@pytest.mark.parametrize(("text", "status"), [("<http://x.test/a> <http://x.test/b", 2), ("", 0)])
def test_an_rdf_file_is_checked_as_it_was_written(text: str, status: int, tmp_path: Path, cli: Cli) -> None:
    agent = '<a> a cs:Agent ; dcterms:identifier "a" ; dcterms:description "Adds." ; cs:hosts <t> .'
    tool = '<t> a cs:Tool ; dcterms:identifier "a/t" ; cs:name "t" ; dcterms:description "Adds" ; cs:hostedOn <a> .'
    tool += " <t> cs:inputSchema '{}'^^cs:json ."
    base = "@base <http://x.test/> . @prefix dcterms: <http://purl.org/dc/terms/> ."
    prefixes = f"{base} @prefix cs: <https://w3id.org/callsheet/ns#> ."
    schema = '<t> cs:inputSchema "{}"^^cs:json .'
    lone = "<t> cs:hasDependency <d> . <d> a cs:Dependency ; cs:needs <t> ; cs:kind 'tool_indirectly' ."
    file = tmp_path / "own.ttl"
    file.write_text(f"{prefixes} <c> a cs:Catalog ; cs:lists <a> . {agent} {tool} {schema} {lone} {text}")
    ended, out, err = cli("check", "--rdf", "--json", "--catalog", file)
    assert ended == status
    if status:
        assert err.count("\n") == 1
        assert "not valid Turtle" in err
    else:
        assert "integrity-dependencies" in {finding["rule"] for finding in json.loads(out)["findings"]}


def test_without_the_extra_rdf_checks_name_it(
    check: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("callsheet.graphs.rdf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rdflib", None)
    status, out, err = check(SOUND, arguments=("--rdf",))
    assert (status, out) == (2, "")
    assert "pip install '.[rdf]'" in err


SERVER = Path(__file__).parents[3] / "fixtures" / "changing_server.py"


@pytest.fixture
def catalog(tmp_path: Path, own_home: Path) -> Path:
    folder = tmp_path / "manifests"
    folder.mkdir()
    for agent in ("files", "shell"):
        tool = {"name": f"use_{agent}", "description": f"Uses the {agent}.", "inputSchema": {"type": "object"}}
        (folder / f"{agent}.json").write_text(json.dumps({"name": agent, "tools": [tool]}))
    return folder


def policy_file(tmp_path: Path, **policy: Any) -> str:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(policy))
    return str(file)


def test_a_policy_hides_what_it_does_not_allow(catalog: Path, tmp_path: Path, cli: Cli) -> None:
    policy = policy_file(tmp_path, default="allow", deny=["shell"])
    words = ("retrieve", "use the shell", "--catalog", str(catalog), "--json", "--explain")
    assert "shell/use_shell" in cli(*words)[1]
    _, out, _ = cli(*words, "--policy", policy)
    assert "shell/use_shell" not in out
    assert json.loads(out)["trace"]["policy"] == "the policy allows 1 of 2 tools"
    words = ("retrieve", "use files", "--catalog", str(catalog), "--explain", "--policy", policy)
    assert "the policy allows 1 of 2 tools" in cli(*words)[1]


@pytest.mark.server
def test_rules_for_resources_and_prompts_have_an_effect(catalog: Path, tmp_path: Path, cli: Cli) -> None:
    server = {"command": sys.executable, "args": [str(SERVER.with_name("working_server.py")), str(tmp_path / "log")]}
    (config := tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"works": server}}))
    policy = policy_file(tmp_path, default="allow", deny=["works/resource:*", "works/prompt:report", "works/prompt:x"])
    _, out, _ = cli("check", "--catalog", str(config), "--yes", "--policy", policy, "--json")
    found = [finding for finding in json.loads(out)["findings"] if finding["rule"] == "policy-rule-without-effect"]
    assert ["'works/prompt:x'" in finding["message"] for finding in found] == [True]


def test_check_finds_what_servers_changed_once(catalog: Path, tmp_path: Path, cli: Cli) -> None:
    script, pins = tmp_path / "a.json", tmp_path / "team" / "pins.json"
    script.write_text(json.dumps({"tools": [{"name": "work", "description": "Works."}]}))
    server = {"command": sys.executable, "args": [str(SERVER), str(script), str(tmp_path / "log")]}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"a": server}}))
    words = ("--catalog", str(config), "--yes", "--pins", str(pins))
    assert cli("index", *words)[0] == 0
    assert pins.exists()
    script.write_text(json.dumps({"tools": [{"name": "work", "description": "Works more."}]}))
    for listing in (cache_folder() / "listings").iterdir():
        os.utime(listing, (0, time.time() - 7_300))
    assert "1 of the servers were not asked again: their listings are up to 2 h old" in cli("check", *words)[2]
    assert cli("sync", *words)[0] == 0
    status, out, _ = cli("check", *words, "--json")
    assert status == 1
    rules = [finding["rule"] for finding in json.loads(out)["findings"] if finding["severity"] == "error"]
    assert rules == ["pin-changed"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("aks", "x"), "Did you mean 'ask'?"),
        (
            ("check", "--catalog", "mytools.py"),
            "mytools.py is a Python file: write mytools:shouts, which",
        ),
        (
            ("check", "--catalog", "mytool"),
            "no catalog at mytool: it is not a file, a folder or module:object (did",
        ),
        (("check", "--catalog", "one.json", "--ignore", "shadowin"), "(did you mean 'shadowing'?)"),
        (("retrieve", "x", "--catalog", "one.json", "--method", "bm52"), "(did you mean 'bm25'?)"),
        (("trust", "allow", "weathr", "--catalog", "one.json"), "(did you mean 'weather'?)"),
        (("trust", "revoke", "weathr", "--catalog", "one.json"), "(did you mean 'weather'?)"),
        (("call", "weather", "--catalog", "one.json"), "'weather' is an agent; its tools are weather/forecast"),
        (("call", "forecast", "--catalog", "one.json"), "(did you mean 'weather/forecast'?)"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mytools.py").write_text("LIMIT = 5\nshouts = [print]\n")
    forecast = {"name": "forecast", "inputSchema": {"type": "object"}}
    Path("one.json").write_text(json.dumps({"name": "weather", "tools": [forecast]}))
    status, _, err = cli(*words)
    assert (status, told in " ".join(err.split())) == (2, True), err
