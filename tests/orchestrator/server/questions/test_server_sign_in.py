"""A run on the LangGraph server that lacks a sign-in: it names the page, and the step is repeated after it."""

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

from callsheet.agents.servers.oauth.sign_in import browser_sign_in
from langgraph_server import DevServer
from served import ROOT, running
from servers import HANG
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


async def results(client: LangGraphClient, thread: str, given: Any = None) -> Any:
    done: Any = await client.runs.wait(thread, "supervisor", input=given)
    return done["results"]["1"]


async def repeated(server: DevServer, thread: str, user: str = "") -> None:
    """What the page does to repeat the steps that failed."""
    headers = {"x-callsheet-key": "page", **({"Authorization": f"Bearer token-of-{user}"} if user else {})}
    async with httpx.AsyncClient(headers=headers, timeout=HANG) as http:
        given = {"thread": thread, "answers": {}}
        answer = await http.post(f"{server.url}/callsheet/api/resume", json=given)
        assert answer.status_code == 200, answer.text


async def sign_in(server: DevServer, address: str, user: str = "") -> httpx.Response:
    """Opens the page that an error names, and goes on from there as its script does."""
    headers = {"x-callsheet-key": "page", **({"Authorization": f"Bearer token-of-{user}"} if user else {})}
    async with httpx.AsyncClient(follow_redirects=True, timeout=HANG) as browser:
        assert "Sign in" in (await browser.get(address)).text
        given = {"agent": httpx.URL(address).params["agent"]}
        begun = await browser.post(f"{server.url}/callsheet/api/sign-in", json=given, headers=headers)
        assert begun.status_code == 200, begun.text
        return await browser.get(begun.json()["url"])


def page_in(error: str) -> str:
    return error.partition("sign in at ")[2].partition(" ")[0]


@pytest.mark.parametrize("server", ["nobody"], indirect=True)
async def test_a_step_whose_sign_in_is_lost_names_the_page_and_is_repeated(
    server: DevServer, tickets: SignedInServer
) -> None:
    anna = client(server)
    thread = (await anna.threads.create())["thread_id"]
    assert (await results(anna, thread, GIVEN))["result"] == "anna"
    tickets.authorization.access.clear()
    tickets.authorization.refresh.clear()
    failed = await results(anna, thread, GIVEN)
    page = page_in(failed["error"])
    assert (failed["status"], page) == ("failed", f"{server.url}/callsheet/sign-in?agent=tickets")
    assert "Signed in" in (await sign_in(server, page)).text
    await repeated(server, thread)
    await anna.runs.join(thread, (await anna.runs.list(thread, limit=1))[0]["run_id"])
    state: Any = await anna.threads.get_state(thread)
    assert state["values"]["results"]["1"]["result"] == "anna"
    assert not any(token in server.said() for token in tickets.authorization.issued)


@pytest.mark.parametrize("server", ["users"], indirect=True)
async def test_two_users_of_a_server_sign_in_each_for_themselves(server: DevServer, tickets: SignedInServer) -> None:
    for user in ("bert", "carla"):
        tickets.authorization.person = user
        own = client(server, user)
        thread = (await own.threads.create())["thread_id"]
        failed = await results(own, thread, GIVEN)
        assert f"--user {user}" in failed["error"]
        assert "Signed in" in (await sign_in(server, page_in(failed["error"]), user)).text
        assert (await results(own, thread, GIVEN))["result"] == user
    given: Any = {"json": {"agent": "tickets"}, "headers": {"x-callsheet-key": "page"}}
    assert httpx.post(f"{server.url}/callsheet/api/sign-in", **given).status_code in (401, 403)
    forged = httpx.get(f"{server.url}/callsheet/sign-in/callback", params={"state": "forged"})
    assert forged.status_code == 400
    assert not any(token in server.said() for token in tickets.authorization.issued)
