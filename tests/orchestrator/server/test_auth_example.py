"""``examples/auth`` under ``langgraph dev``: two users who see different tools, runs and figures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from explored_page import sent, watched
from langgraph_server import DevServer
from page_runs import drawn

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[3]
TOKENS = {"token-of-ann": {"id": "ann", "groups": ["staff"]}, "token-of-bob": {"id": "bob"}}
MAIL = "Send an e-mail with the text 'it was shipped' to ann@example.org"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    folder = tmp_path_factory.mktemp("auth") / "example"
    shutil.copytree(ROOT / "examples/auth", folder)
    env = {
        "AUTH_TOKENS": json.dumps(TOKENS),
        "CALLSHEET_HOME": str(tmp_path_factory.mktemp("home")),
        "CALLSHEET_YES": "1",
        "PYTHONPATH": str(ROOT),
    }
    started = DevServer(folder, folder / "langgraph.json", folder / "server.log", env)
    started.start()
    yield started
    started.stop()


def client(server: DevServer, user: str) -> LangGraphClient:
    return get_client(url=server.url, headers=headers(user))


def headers(user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer token-of-{user}"} if user else {}


def page(server: DevServer, user: str, name: str, **given: Any) -> httpx.Response:
    return httpx.get(f"{server.url}/callsheet/{name}", headers=headers(user), params=given, timeout=60)


def test_nobody_gets_in_without_a_token_but_the_page_is_there_to_ask_for_one(server: DevServer) -> None:
    for name in ("api/overview", "api/search", "api/runs", "metrics"):
        assert page(server, "", name, q="x").status_code == 401
        assert page(server, "eve", name, q="x").status_code == 401
    studio = {"x-auth-scheme": "langsmith"}
    assert httpx.get(f"{server.url}/callsheet/api/overview", headers=studio, timeout=60).status_code == 401
    assert httpx.post(f"{server.url}/threads/search", json={}, timeout=60).status_code == 401
    assert "<title>Callsheet</title>" in page(server, "", "").text
    assert page(server, "", "health").json() == {"status": "ok"}


async def test_two_users_are_given_different_tools(server: DevServer) -> None:
    found: dict[str, set[str]] = {}
    for user in ("ann", "bob"):
        state: Any = await client(server, user).runs.wait(None, "retriever", input={"query": MAIL})
        found[user] = {tool["id"] for agent in state["selection"]["agents"] for tool in agent["tools"]}
        shown = page(server, user, "api/search", q=MAIL).json()
        assert {tool["link"]["id"] for agent in shown["agents"] for tool in agent["tools"]} == found[user]
    assert "mail/send_mail" in found["ann"]
    assert found["bob"] <= {"orders/order_status"}


async def test_no_client_can_pose_as_another_user_or_bring_a_policy(server: DevServer) -> None:
    forged: Any = {"langgraph_auth_user": {"identity": "ann"}, "langgraph_auth_permissions": ["staff"]}
    query, runs = {"query": MAIL}, client(server, "bob").runs
    state: Any = await runs.wait(None, "retriever", input=query, config={"configurable": forged})
    assert "mail" not in {agent["id"] for agent in state["selection"]["agents"]}
    for context in (forged, {"policy": "other.json"}):
        with pytest.raises(Exception, match="no setting '"):
            await runs.wait(None, "retriever", input=query, context=context)


async def test_a_run_its_question_and_its_figures_are_shown_to_its_owner_only(server: DevServer) -> None:
    ann, bob = client(server, "ann"), client(server, "bob")
    thread = (await ann.threads.create())["thread_id"]
    given: Any = {"messages": [{"role": "user", "content": MAIL}]}
    await ann.runs.wait(thread, "supervisor", input=given)
    assert [run["id"] for run in page(server, "ann", "api/runs").json()] == [thread]
    (events,) = page(server, "ann", "api/run", id=thread).json()
    run = drawn(events)
    assert (run["request"], run["status"], run["steps"][0]["status"]) == (MAIL, "waiting", "needs_approval")
    assert page(server, "bob", "api/runs").json() == []
    assert page(server, "bob", "api/run", id=thread).status_code == 404
    assert "callsheet_approvals_waiting 1.0" in page(server, "ann", "metrics").text
    told = page(server, "bob", "metrics").text
    assert "callsheet_approvals_waiting 0.0" in told
    assert 'agent="mail"' not in told
    state: Any = await bob.runs.wait(None, "supervisor", input=given)
    assert all(not result["calls"] for result in state["results"].values())
    assert "mail/send_mail" not in str(state["results"])


def test_a_request_of_the_page_runs_for_its_user_and_is_decided_by_nobody_else(server: DevServer) -> None:
    nobody, ann, bob = (
        httpx.Client(base_url=server.url, headers={**headers(user), "x-callsheet-key": "page"}, timeout=60)
        for user in ("", "ann", "bob")
    )
    assert nobody.post("/callsheet/api/start", json={"text": MAIL}).status_code == 401
    thread = sent(ann, "start", text=MAIL)
    (question,) = watched(ann, thread)[-1]["questions"]
    assert question["tool"]["id"] == "mail/send_mail"
    assert watched(bob, thread) == []
    approved = {question["id"]: {"type": "approve", "hash": question["hash"]}}
    for name, given in (("resume", {"answers": approved}), ("cancel", {}), ("start", {"text": "more"})):
        sent(bob, name, 409, thread=thread, **given)
    sent(ann, "resume", thread=thread, answers={question["id"]: {"type": "reject", "hash": question["hash"]}})
    assert watched(ann, thread)[-1]["status"] == "failed"
    last = watched(bob, sent(bob, "start", text=MAIL))[-1]
    assert "mail/send_mail" not in json.dumps([last["steps"], last["questions"]])
