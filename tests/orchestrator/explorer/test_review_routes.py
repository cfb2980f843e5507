"""The routes of the review: who may decide, about exactly what was shown, and that it is used at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from callsheet.agents import ToolRegistry
from callsheet.agents.servers.catalogs.server_catalog import with_agent
from callsheet.graphs import DependencyKind, Loaded, Policy, TrustError, dump, load
from callsheet.graphs.dependencies import Proposal, read_dependencies, write_dependencies
from callsheet.graphs.trust.consent import StandingApprovals
from callsheet.orchestrator.run.process.process_state import Served
from callsheet.orchestrator.server import Site, create_explorer, review
from callsheet.retrievers import AgentGraphRetriever
from explored import KEY, FixedEmbeddings, client_of, explorer
from reviewed import CHANGED, DELETE, FIND, NEW, Reviewed
from small import small_catalog

STALE = "this is not what waits now"
REVIEWERS = Policy(
    default="allow",
    reviewers=("ann", "staff"),
    groups={"staff": {"members": ["cat"]}},  # type: ignore[dict-item]
    users={"cat": {"deny": ["crm/merge*", "crm/find*"]}},  # type: ignore[dict-item]
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))


@pytest.fixture
def made(tmp_path: Path) -> Reviewed:
    return Reviewed(tmp_path)


def part(client: TestClient, name: str, **more: Any) -> Any:
    answer = client.get("/callsheet/api/review", params={"part": name, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def decide(client: TestClient, status: int = 200, **body: Any) -> str:
    answer = client.post("/callsheet/api/decide", json={"part": "changes", **body})
    assert answer.status_code == status, answer.text
    told = answer.json()
    return str(told["error"] if status != 200 else told["told"] + told["note"])


def accepted(client: TestClient, name: str, n: int = 0, status: int = 200, **more: Any) -> str:
    return decide(client, status, part=name, digest=part(client, name)["items"][n]["digest"], **more)


def test_a_change_is_shown_side_by_side_accepted_and_found_in_the_same_process(made: Reviewed) -> None:
    client = made.client()
    assert client.get("/callsheet/api/overview").json()["quarantined"] == 2
    assert "crm/find_contacts" not in made.retriever.catalog.tools
    changed, new = part(client, "changes")["items"]
    assert part(client, "changes", words="MERGE contacts") == {"total": 1, "items": [new], "refusal": ""}
    assert part(client, "changes", start=1_000)["items"] == []
    assert client.get("/callsheet/api/review?part=other").status_code == 400
    assert (changed["label"], changed["kind"], changed["quarantines"]) == ("crm/find_contacts", "changed", True)
    assert changed["lines"][0] == ["name: find_contacts"] * 2
    before, after = changed["lines"][1]
    assert before == "description: Finds contacts."
    assert "in every book.\\u202e</script>" in after  # written out as on the command line
    assert {before for before, _ in new["lines"]} == {None}
    assert accepted(client, "changes") == "crm/find_contacts is accepted"
    assert made.retriever.catalog.tools["crm/find_contacts"].description.startswith("Finds contacts in every")
    assert made.retriever.select("find contacts in every book").tools_of["crm"][0] == "crm/find_contacts"
    assert client.get("/callsheet/api/overview").json()["quarantined"] == 1
    assert load(made.read()).changes[0].tool == "merge_contacts"


def test_only_what_was_shown_is_accepted(made: Reviewed) -> None:
    client = made.client()
    shown = part(client, "changes")["items"][0]["digest"]
    for digest in ("0" * 64, shown[:-1] + ("0" if shown[-1] != "0" else "1")):
        assert STALE in decide(client, 409, digest=digest)
    assert "is accepted" in decide(client, digest=shown)
    assert STALE in decide(client, 409, digest=shown)  # somebody else has accepted it
    # The server changes again after the page was shown: the one that was shown is accepted, the other waits.
    new = part(client, "changes")["items"][0]["digest"]
    made.tools = [CHANGED, DELETE, {**NEW, "description": "Sends all contacts elsewhere."}]
    decide(client, digest=new)
    assert [item["kind"] for item in part(client, "changes")["items"]] == ["changed"]
    assert "crm/merge_contacts" not in made.retriever.catalog.tools
    assert decide(client, 400, digest="x").startswith("digest")
    assert decide(client, 400, digest=new, accept=True, more=1).startswith("more")
    assert "stays in quarantine" in accepted(client, "changes", accept=False, status=409)


def test_what_the_command_line_accepted_meanwhile_is_not_overwritten(made: Reviewed) -> None:
    client = made.client()
    shown = part(client, "changes")["items"][0]["digest"]
    stale = made.read().changes[0]
    made.tools = [{**FIND, "description": "Finds contacts quickly."}, DELETE, NEW]
    made.book.accept([change for change in made.read().changes if change.tool == "find_contacts"])
    assert "another definition was accepted meanwhile" in decide(client, 409, digest=shown)
    with pytest.raises(TrustError, match="crm/find_contacts: another definition was accepted"):
        made.book.accept([stale])
    definition = made.book.servers()["crm"].tools["find_contacts"].definition
    assert definition is not None
    assert definition["description"] == "Finds contacts quickly."


def test_a_dependency_is_accepted_taken_back_and_rejected_for_ever(made: Reviewed) -> None:
    client = made.client()
    accepted(client, "changes")
    (edge,) = part(client, "dependencies")["items"]
    assert (edge["source"]["id"], edge["target"]["id"]) == ("crm/delete_contact", "crm/find_contacts")
    assert (edge["parameter"], edge["required"], edge["accept"]) == ("contact_id", True, None)
    assert "fits contact_id" in edge["evidence"]
    assert accepted(client, "dependencies", accept=True).endswith("is accepted")
    (held,) = made.retriever.catalog.tools["crm/delete_contact"].depends_on
    assert held.required
    assert STALE in decide(client, 409, part="dependencies", digest=edge["digest"], accept=False)
    assert accepted(client, "dependencies", accept=None).endswith("undecided again")
    assert not made.retriever.catalog.tools["crm/delete_contact"].depends_on[0].holds
    accepted(client, "dependencies", accept=False)
    assert made.retriever.catalog.tools["crm/delete_contact"].depends_on == ()
    assert [edge.accept for edge in read_dependencies(made.decisions)] == [False]
    loaded = made.read()
    assert loaded.rejected == (("crm/delete_contact", "crm/find_contacts", "contact_id"),)
    # Also after the server announces another change.
    now = with_agent(loaded, "crm", made.listed())
    assert (now.rejected, now.dependency_files) == (loaded.rejected, (str(made.decisions),))


def test_a_decision_is_taken_back_in_the_file_that_has_it(made: Reviewed, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    edge = Proposal(source="crm/delete_contact", target="maps/find_place", kind=DependencyKind.TOOL_DIRECTLY)
    write_dependencies((edge,), made.decisions)
    write_dependencies((edge.model_copy(update={"accept": True}),), other)
    made.more = (other,)
    client = made.client()
    made.listed_again()
    assert accepted(client, "dependencies", accept=None).endswith("undecided again")
    assert read_dependencies(other) == (edge,)


def test_a_decision_in_the_file_meanwhile_is_kept(made: Reviewed) -> None:
    client = made.client()
    accepted(client, "changes")
    shown = part(client, "dependencies")["items"][0]["digest"]
    made.decisions.write_text(
        '{"callsheet_dependencies": 1, "edges": [{"source": '
        '"crm/delete_contact", "target": "crm/find_contacts", "kind": "parameter_directly", "parameter": '
        '"contact_id", "accept": false}]}'
    )
    assert STALE in decide(client, 409, part="dependencies", digest=shown, accept=True)
    content = read_dependencies(made.decisions)
    assert content[0].accept is False
    accepted(client, "dependencies", accept=True)
    content = read_dependencies(made.decisions)
    assert content[0].accept is True
    made.decisions.write_text("{")
    assert "dependencies.json" in client.get("/callsheet/api/review?part=dependencies").json()["error"]


def test_nothing_is_decided_without_the_key_or_from_elsewhere(made: Reviewed) -> None:
    client = TestClient(made.page())
    body = {"part": "changes", "digest": part(made.client(), "changes")["items"][0]["digest"]}
    right = {"x-callsheet-key": KEY}
    for headers, status in (
        ({}, 403),
        ({"x-callsheet-key": "guess"}, 403),
        ({**right, "host": "evil.example"}, 400),
        ({**right, "origin": "https://evil.example"}, 403),
        ({**right, "origin": "null"}, 403),
        ({**right, "sec-fetch-site": "cross-site"}, 403),
        ({**right, "content-type": "text/plain"}, 415),
    ):
        assert client.post("/callsheet/api/decide", json=body, headers=headers).status_code == status, headers
    assert client.get("/callsheet/api/decide", headers=right).status_code == 405
    assert client.post("/callsheet/api/decide", content=b" " * 1_100_000, headers=right).status_code in (409, 415)
    assert len(made.read().changes) == 2


def test_on_a_server_only_named_reviewers_decide_and_only_about_what_they_see(tmp_path: Path) -> None:
    made = Reviewed(tmp_path, REVIEWERS)
    shown = part(made.client("ann"), "changes")
    assert (shown["refusal"], shown["total"]) == ("", 2)
    digest = shown["items"][0]["digest"]
    bob = part(made.client("bob"), "changes")
    assert '"reviewers"' in bob["refusal"]
    assert '"reviewers"' in decide(made.client("bob"), 403, digest=digest)
    # Cat may review, by a group, but neither sees nor accepts what the policy hides.
    assert part(made.client("cat"), "changes") == {"total": 0, "items": [], "refusal": ""}
    assert made.client("cat").get("/callsheet/api/overview").json()["quarantined"] == 0
    assert STALE in decide(made.client("cat"), 409, digest=digest)
    assert "is accepted" in decide(made.client("ann"), digest=digest)
    assert part(made.client("ann"), "dependencies")["total"] == 1
    assert part(made.client("cat"), "dependencies")["total"] == 0
    # Nor does a reason name it.
    made.decisions.write_text("{")
    for user, told in (("ann", "dependencies.json"), ("cat", "may name tools that you may not see")):
        answer = made.client(user).get("/callsheet/api/review?part=dependencies")
        assert (answer.status_code, told in answer.json()["error"]) == (409, True), answer.text
    app = made.page(authenticated=True)
    assert TestClient(app).post("/callsheet/api/decide", json={"digest": digest}).status_code == 403


def test_a_page_without_a_way_to_load_again_only_shows() -> None:
    client = client_of(explorer(small_catalog()))
    assert "cannot load its catalog again" in part(client, "dependencies")["refusal"]
    assert "cannot load its catalog again" in decide(client, 403, digest="0" * 64)


def test_a_definition_that_is_too_long_to_be_shown_is_not_accepted_here(
    made: Reviewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = made.client()
    made.tools = [{**FIND, "description": "\n" * 50_000}, DELETE]
    made.listed_again()
    (lines,) = part(client, "changes")["items"]
    made.tools = [CHANGED, DELETE]
    made.listed_again()
    monkeypatch.setattr(review, "_MOST_SHOWN", 100)
    (changed,) = part(client, "changes")["items"]
    assert [lines["digest"], lines["lines"], changed["digest"], changed["lines"]] == ["", [], "", []]
    assert decide(made.client(), 400, digest="").startswith("digest")


def test_a_catalog_that_cannot_be_loaded_again_is_said_and_the_decision_is_stored(
    made: Reviewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = made.client()
    made.catalog.write_text("{")
    assert "used only after a restart" in accepted(client, "changes")
    made.catalog.unlink()
    monkeypatch.setattr(type(made.retriever), "follow", lambda *_: 1 / 0)
    made.catalog.write_text(dump(small_catalog()))
    assert "division by zero" in accepted(client, "changes", n=0)
    definition = made.book.servers()["crm"].tools["find_contacts"].definition
    assert definition == CHANGED


def test_a_catalog_without_a_file_of_dependencies_gets_one_by_the_first_decision(tmp_path: Path) -> None:
    file = tmp_path / "catalog.json"
    file.write_text(json.dumps({"name": "crm", "tools": [FIND, DELETE]}))

    def read() -> Loaded:
        return load(file)

    loaded = read()
    retriever = AgentGraphRetriever.from_catalog(loaded, embeddings=FixedEmbeddings(), index=":memory:")
    found = Served(loaded, retriever, ToolRegistry.from_catalog(loaded), read)
    client = client_of(create_explorer(Site(lambda: found), key=KEY, hosts=("testserver",)))
    shown = part(client, "dependencies")
    assert (len(shown["items"]), shown["refusal"]) == (1, "")
    assert not Path(*loaded.dependency_files).exists()
    assert accepted(client, "dependencies", accept=True).endswith("is accepted")
    (held,) = read().catalog.tools["crm/delete_contact"].depends_on
    assert held.required
    file.write_text(json.dumps({"name": "crm", "tools": [FIND]}))
    assert "delete_contact" in str(read().problems)


def test_a_user_sees_and_revokes_their_standing_approvals(tmp_path: Path) -> None:
    made = Reviewed(tmp_path, REVIEWERS)
    loaded = made.served.registry.loaded
    tool = loaded.catalog.tool("crm/delete_contact")
    stored = {user: StandingApprovals.of(loaded.label, user) for user in ("", "ann", "bert", None)}
    for each in stored.values():
        assert each is not None
        each.add(tool, loaded.pin(tool) if each.user else "of an earlier definition")
    bert = made.client("bert")  # no reviewer
    told = part(bert, "allowed")
    (one,) = told["items"]
    assert (told["refusal"], one["tool"]["id"], one["holds"]) == ("", tool.id, True)
    assert "can only be revoked" in decide(bert, 409, part="allowed", digest=one["digest"], accept=True)
    assert STALE in decide(made.client("ann"), 409, part="allowed", digest=one["digest"], accept=False)
    assert decide(bert, part="allowed", digest=one["digest"], accept=False) == "crm/delete_contact asks again"
    assert STALE in decide(bert, 409, part="allowed", digest=one["digest"], accept=False)
    assert part(bert, "allowed")["items"] == []
    assert [entry["holds"] for entry in part(made.client(), "allowed")["items"]] == [False]
    assert stored["ann"] is not None
    assert [entry.user for entry in stored["ann"].entries()] == ["", "ann", None]
