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

from callsheet.agents.servers.oauth.browser_sign_in import browser_sign_in
from langgraph_server import DevServer
from served import ROOT, running
from signed_in_server import SignedInServer, browse, signed_in_server

pytestmark = pytest.mark.server

WHO = "Tell who is signed in"
GIVEN: Any = {"messages": [{"role": "user", "content": WHO}]}
KEY = "k" * 32


@pytest.fixture(scope="module")
def tickets() -> Iterator[SignedInServer]:
    with signed_in_server() as started:
        yield started


@pytest.fixture(scope="module")
def server(tickets: SignedInServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """A server whose catalog was listed with a sign-in of its operator."""
    folder = tmp_path_factory.mktemp("signed-in")
    shutil.copy(ROOT / "langgraph.json", folder)
    entry = {"url": tickets.url, "callsheet": {"trusted": True}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"tickets": entry}}))
    env = {
        "CALLSHEET_HOME": str(folder / "home"),
        "CALLSHEET_CATALOG": "mcp.json",
        "CALLSHEET_KEY": KEY,
        "CALLSHEET_YES": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CALLSHEET_HOME", "CALLSHEET_KEY"):
            patch.setenv(name, env[name])
        asyncio.run(browser_sign_in(tickets.url, browse))
        with running(DevServer(folder, folder / "langgraph.json", folder / "server.log", env)) as started:
            yield started


async def test_a_sign_in_that_is_lost_is_asked_for_and_the_run_goes_on(
    server: DevServer, tickets: SignedInServer
) -> None:
    client = get_client(url=server.url)
    thread = (await client.threads.create())["thread_id"]
    done: Any = await client.runs.wait(thread, "supervisor", input=GIVEN)
    assert done["results"]["1"]["result"] == "anna"
    tickets.authorization.access.clear()
    tickets.authorization.refresh.clear()
    await client.runs.wait(thread, "supervisor", input=GIVEN)
    (question,) = (await client.threads.get_state(thread))["interrupts"]
    assert question["value"]["type"] == "sign_in"
    page = httpx.URL(question["value"]["url"])
    assert page.params["redirect_uri"] == f"{server.url}/callsheet/sign-in/callback"
    await browse(question["value"]["url"])
    done = await client.runs.wait(thread, "supervisor", command={"resume": {question["id"]: {"type": "signed_in"}}})
    assert done["results"]["1"]["result"] == "anna"
