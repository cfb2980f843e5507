"""A run on the LangGraph server that needs a sign-in: interrupt, callback, and the run goes on."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from callsheet.agents.servers.oauth.browser_sign_in import browser_sign_in
from langgraph_server import DevServer
from served import ROOT, running
from signed_in_server import SignedInServer, browse, signed_in_server

pytestmark = pytest.mark.server

WHO = "Whoami"
GIVEN: Any = {"messages": [{"role": "user", "content": WHO}]}


@pytest.fixture(scope="module")
def tickets() -> Iterator[SignedInServer]:
    with signed_in_server() as started:
        yield started


@pytest.fixture(scope="module", params=["nobody", "users"])
def server(
    request: pytest.FixtureRequest, tickets: SignedInServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DevServer]:
    """A server whose catalog was listed with a sign-in of its operator; with or without authentication."""
    folder = tmp_path_factory.mktemp("signed-in")
    config = json.loads((ROOT / "langgraph.json").read_text())
    if request.param == "users":
        shutil.copy(ROOT / "examples" / "auth" / "auth.py", folder)
        config["auth"] = {"path": "./auth.py:auth", "disable_studio_auth": True}
    (folder / "langgraph.json").write_text(json.dumps(config))
    entry = {"url": tickets.url, "callsheet": {"trusted": True}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"tickets": entry}}))
    env = {
        "AUTH_TOKENS": json.dumps({f"token-of-{user}": {"id": user} for user in ("bert", "carla")}),
        "CALLSHEET_HOME": str(folder / "home"),
        "CALLSHEET_CATALOG": "mcp.json",
        "CALLSHEET_KEY": "k" * 32,
        "CALLSHEET_YES": "1",
    }
    tickets.authorization.person = "anna"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CALLSHEET_HOME", "CALLSHEET_KEY"):
            patch.setenv(name, env[name])
        asyncio.run(browser_sign_in(tickets.url, browse))
        with running(DevServer(folder, folder / "langgraph.json", folder / "server.log", env)) as started:
            yield started


def client(server: DevServer, user: str = "") -> LangGraphClient:
    return get_client(url=server.url, headers={"Authorization": f"Bearer token-of-{user}"} if user else {})


async def asked(client: LangGraphClient, thread: str, command: Any = None) -> Any:
    """The question at which a run stops."""
    await client.runs.wait(thread, "supervisor", input=None if command else GIVEN, command=command)
    (question,) = (await client.threads.get_state(thread))["interrupts"]
    assert question["value"]["type"] == "sign_in"
    return question


def reply(question: Any, **answer: str) -> Any:
    return {"resume": {question["id"]: {"type": "signed_in", **answer}}}


@pytest.mark.parametrize("server", ["nobody"], indirect=True)
async def test_a_sign_in_that_is_lost_is_asked_for_and_the_run_goes_on(
    server: DevServer, tickets: SignedInServer
) -> None:
    anna = client(server)
    thread = (await anna.threads.create())["thread_id"]
    done: Any = await anna.runs.wait(thread, "supervisor", input=GIVEN)
    assert done["results"]["1"]["result"] == "anna"
    tickets.authorization.access.clear()
    tickets.authorization.refresh.clear()
    question = await asked(anna, thread)
    page = httpx.URL(question["value"]["url"])
    assert page.params["redirect_uri"] == f"{server.url}/callsheet/sign-in/callback"
    await browse(question["value"]["url"])
    done = await anna.runs.wait(thread, "supervisor", command=reply(question))
    assert done["results"]["1"]["result"] == "anna"
    assert not any(token in server.said() for token in tickets.authorization.issued)


@pytest.mark.parametrize("server", ["users"], indirect=True)
async def test_two_users_of_a_server_sign_in_and_repeat_their_codes(server: DevServer, tickets: SignedInServer) -> None:
    for user in ("bert", "carla"):
        tickets.authorization.person = user
        own = client(server, user)
        thread = (await own.threads.create())["thread_id"]
        question = await asked(own, thread)
        async with httpx.AsyncClient(follow_redirects=True) as browser:
            page = (await browser.get(question["value"]["url"])).text
        code = page.partition("with the code ")[2].partition(".")[0]
        question = await asked(own, thread, reply(question, code="WRONG"))
        assert "the code is not the one" in question["value"]["problem"]
        done: Any = await own.runs.wait(thread, "supervisor", command=reply(question, code=code))
        assert done["results"]["1"]["result"] == user
        again: Any = await own.runs.wait(thread, "supervisor", input=GIVEN)
        assert again["results"]["1"]["result"] == user
    assert httpx.get(f"{server.url}/callsheet/sign-in/callback", params={"state": "forged"}).status_code == 400
    assert not any(token in server.said() for token in tickets.authorization.issued)
