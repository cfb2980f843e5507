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


@pytest.fixture(scope="module")
def server(tickets: SignedInServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """A server with users, whose catalog was listed with a sign-in of its operator."""
    folder = tmp_path_factory.mktemp("signed-in")
    config = json.loads((ROOT / "langgraph.json").read_text())
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


def headers(user: str) -> dict[str, str]:
    return {"x-callsheet-key": "page", "Authorization": f"Bearer token-of-{user}"}


async def repeated(server: DevServer, thread: str, user: str) -> None:
    """What the page does to repeat the steps that failed."""
    async with httpx.AsyncClient(headers=headers(user), timeout=HANG) as http:
        given = {"thread": thread, "answers": {}}
        answer = await http.post(f"{server.url}/callsheet/api/resume", json=given)
        assert answer.status_code == 200, answer.text


async def sign_in(server: DevServer, address: str, user: str) -> httpx.Response:
    """Opens the page that an error names, and goes on from there as its script does."""
    async with httpx.AsyncClient(follow_redirects=True, timeout=HANG) as browser:
        assert "Sign in" in (await browser.get(address)).text
        given = {"agent": httpx.URL(address).params["agent"]}
        begun = await browser.post(f"{server.url}/callsheet/api/sign-in", json=given, headers=headers(user))
        assert begun.status_code == 200, begun.text
        return await browser.get(begun.json()["url"])


async def test_two_users_of_a_server_sign_in_each_for_themselves_and_repeat_the_step(
    server: DevServer, tickets: SignedInServer
) -> None:
    page = f"{server.url}/callsheet/sign-in?agent=tickets"
    for user in ("bert", "carla"):
        tickets.authorization.person = user
        own: Any = get_client(url=server.url, headers=headers(user))
        thread = (await own.threads.create())["thread_id"]
        failed = (await own.runs.wait(thread, "supervisor", input=GIVEN))["results"]["1"]
        assert (failed["status"], f"sign in at {page} " in failed["error"]) == ("failed", True)
        assert f"--user {user}" in failed["error"]
        assert "Signed in" in (await sign_in(server, page, user)).text
        await repeated(server, thread, user)
        await own.runs.join(thread, (await own.runs.list(thread, limit=1))[0]["run_id"])
        assert (await own.threads.get_state(thread))["values"]["results"]["1"]["result"] == user
    given: Any = {"json": {"agent": "tickets"}, "headers": {"x-callsheet-key": "page"}}
    assert httpx.post(f"{server.url}/callsheet/api/sign-in", **given).status_code in (401, 403)
    forged = httpx.get(f"{server.url}/callsheet/sign-in/callback", params={"state": "forged"})
    assert forged.status_code == 400
    assert not any(token in server.said() for token in tickets.authorization.issued)
