"""``${user:NAME}`` under ``langgraph dev`` with authentication: the key of each user reaches the MCP server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from keyed_server import HEADER, KeyedServer, keyed_server
from langgraph_server import DevServer

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[3]
KEYS = {"anna": "key-of-anna-4711", "bert": "key-of-bert-0815"}
AUTH = """
from langgraph_sdk import Auth

auth = Auth()
KEYS = {keys!r}

@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    name = (authorization or "").removeprefix("Bearer ")
    if not name:
        raise Auth.exceptions.HTTPException(status_code=401, detail="who are you?")
    return {{"identity": name, "crm_key": KEYS.get(name)}}
"""


@pytest.fixture(scope="module")
def crm() -> Iterator[KeyedServer]:
    with keyed_server() as started:
        started.owners = {key: name for name, key in KEYS.items()}
        yield started


@pytest.fixture(scope="module")
def server(crm: KeyedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    folder = tmp_path_factory.mktemp("served")
    entry = {"url": crm.url, "headers": {HEADER: "${user:crm_key}"}, "callsheet": {"trusted": True}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"crm": entry}}), encoding="utf-8")
    (folder / "auth.py").write_text(AUTH.format(keys=KEYS), encoding="utf-8")
    config = {
        "python_version": "3.11",
        "dependencies": [str(ROOT)],
        "graphs": {"supervisor": "callsheet.orchestrator.app:supervisor"},
        "auth": {"path": "./auth.py:auth", "disable_studio_auth": True},
    }
    (folder / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    env = {
        "CALLSHEET_CATALOG": str(folder / "mcp.json"),
        "CALLSHEET_HOME": str(folder / "home"),
        "CALLSHEET_YES": "1",
        "PYTHONPATH": str(ROOT),
        "crm_key": "",
    }
    started = DevServer(folder, folder / "langgraph.json", folder / "server.log", env)
    started.start()
    yield started
    started.stop()


async def asked(server: DevServer, name: str, **configurable: Any) -> tuple[str, Any]:
    """What a user is answered, and the user's thread as the server stores it."""
    client = get_client(url=server.url, headers={"Authorization": f"Bearer {name}"})
    thread = (await client.threads.create())["thread_id"]
    given: Any = {"messages": [{"role": "user", "content": "Contacts"}]}
    config: Any = {"configurable": configurable}
    state: Any = await client.runs.wait(thread, "supervisor", input=given, config=config)
    stored = [await client.threads.get_state(thread), *await client.threads.get_history(thread)]
    return state["messages"][-1]["content"], stored


async def test_each_user_has_answers_for_the_own_key_which_is_stored_nowhere(
    server: DevServer, crm: KeyedServer
) -> None:
    for name, key in KEYS.items():
        said, stored = await asked(server, name)
        assert f"contacts of {name}" in said
        assert key in crm.heard
        assert key not in str(stored)
        assert key not in server.said()


async def test_a_client_cannot_replace_the_key_of_its_user(server: DevServer, crm: KeyedServer) -> None:
    said, _ = await asked(server, "bert", credentials={"crm_key": KEYS["anna"]})
    assert "contacts of bert" in said


async def test_a_user_without_a_key_is_told_which_is_missing(server: DevServer, crm: KeyedServer) -> None:
    before = len(crm.heard)
    said, _ = await asked(server, "carla", credentials={"crm_key": KEYS["anna"]})
    assert "a value of the user's own, 'crm_key'" in said
    assert len(crm.heard) == before
