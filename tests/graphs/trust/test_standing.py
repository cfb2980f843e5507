"""Standing approvals: for one user, one catalog and one definition, and for nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Loaded, ServerConfig, Tool, TrustError
from callsheet.graphs.trust.consent import StandingApprovals

LOG = Tool(agent="git", name="git_log", description="Shows commits.", input_schema={"type": "object"})
SERVER = ServerConfig(command="uvx", args=("mcp-server-git",))


def loaded(tool: Tool = LOG, *, label: str = "/a/mcp.json", server: ServerConfig = SERVER, sha: str = "") -> Loaded:
    catalog = Catalog(agents=(Agent(id=tool.agent, tools=(tool,)),))
    digests = {tool.agent: {tool.name: sha}} if sha else {}
    return Loaded(catalog, label=label, connections={tool.agent: server}, digests=digests)


def standing(of: Loaded, user: str | None = "") -> StandingApprovals:
    found = StandingApprovals.of(of.label, user)
    assert found is not None
    return found


def holds(of: Loaded, tool: Tool = LOG, user: str | None = "") -> bool:
    return standing(of, user).holds(tool.id, of.pin(tool))


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))
    return tmp_path


OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "description": ({"description": "Deletes commits."}, {}, ""),
    "schema": ({"input_schema": {"type": "object", "required": ["x"]}}, {}, ""),
    "accepted definition": ({}, {"sha": "0" * 64}, ""),
    "command": ({}, {"server": SERVER.model_copy(update={"args": ("evil",)})}, ""),
    "catalog": ({}, {"label": "/b/mcp.json"}, ""),
    "tool": ({"name": "git_push"}, {}, ""),
    "user": ({}, {}, "anna"),
    "client without sign-in": ({}, {}, None),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_standing_approval_holds_for_one_user_catalog_and_definition_only(what: str) -> None:
    standing(loaded()).add(LOG, loaded().pin(LOG))
    assert holds(loaded())
    limited = SERVER.model_copy(update={"callsheet": SERVER.callsheet.model_copy(update={"trusted": True})})
    assert holds(loaded(server=limited)), "trust and limits do not change what the tool is"
    fields, more, user = OTHERS[what]
    tool = LOG.model_copy(update=fields)
    assert not holds(loaded(tool, **more), tool, user)


def test_approving_a_changed_tool_replaces_its_old_approval() -> None:
    one = standing(loaded())
    one.add(LOG, "a")
    one.add(LOG, "b")
    assert ([entry.digest for entry in one.entries()], one.holds(LOG.id, "a")) == (["b"], False)


def test_a_revoked_approval_no_longer_holds() -> None:
    one, anna = standing(loaded()), standing(loaded(), "anna")
    for each in (one, anna):
        each.add(LOG, "a")
    assert one.revoke(["git/other"]) == 0
    assert one.revoke([LOG.id]) == 1
    assert (one.holds(LOG.id, "a"), anna.holds(LOG.id, "a")) == (False, True)
    assert one.revoke([LOG.id], everybody=True) == 1
    assert anna.entries() == ()


def test_a_hostile_name_does_not_leave_the_folder_of_approvals(own_home: Path) -> None:
    cases = ["../../etc", "a/b", "x\u202ey", "", "*", "'; --", "a\nb", "a" * 5_000]
    for name in cases:
        hostile = LOG.model_copy(update={"name": name, "agent": f"g{name}"})
        one = standing(loaded(hostile), name)
        one.add(hostile, "a")
        assert (one.holds(hostile.id, "a"), one.holds(LOG.id, "a")) == (True, False)
        assert [file.parent.name for file in own_home.rglob("*.json")] == ["allowed"]


@pytest.mark.parametrize(
    "content", ["{", "[]", "7", '{"callsheet_standing": 2, "allowed": []}', '{"callsheet_standing": 1, "allowed": [1]}']
)
def test_a_damaged_file_allows_nothing_and_is_not_overwritten(content: str) -> None:
    one = standing(loaded())
    one.file.replace(content.encode())
    assert not one.holds(LOG.id, "a")
    with pytest.raises(TrustError):
        one.add(LOG, "a")
    assert one.file.text() == content


def test_the_approvals_file_is_plain_json_that_only_its_owner_can_read(own_home: Path) -> None:
    standing(loaded()).add(LOG, "a")
    (file,) = own_home.rglob("allowed/*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["allowed"][0] | {"since": ""} == {
        "agent": "git",
        "tool": "git_log",
        "digest": "a",
        "since": "",
        "user": "",
    }


def test_a_catalog_without_a_file_has_no_standing_approvals() -> None:
    assert StandingApprovals.of("") is None
