"""Calls that wait for a person on the LangGraph server, answered through ``langgraph_sdk``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from langgraph_server import DevServer

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[3]
POST = '''
"""Tools that write down what they do."""
from pathlib import Path

from langchain_core.tools import tool

LOG = Path(__file__).with_name("effects")


@tool
def order_status(order_id: str) -> str:
    """Looks up the status of an order by its order id."""
    with LOG.open("a") as log:
        log.write(f"{order_id}\\n")
    return f"{order_id} was shipped on Monday"


agents = {"orders": [order_status]}
'''
QUESTION = "Look up the status of order ORD-551 and look up the status of order ORD-552"
GIVEN: Any = {"messages": [{"role": "user", "content": QUESTION}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("post")
    (made / "post_of_the_server.py").write_text(POST)
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    env = {
        "CALLSHEET_HOME": str(folder / "home"),
        "CALLSHEET_CATALOG": "post_of_the_server:agents",
        "PYTHONPATH": str(folder),
    }
    dev = DevServer(folder, ROOT / "langgraph.json", folder / "log", env)
    dev.start()
    yield dev.url
    dev.stop()


def effects(folder: Path) -> list[str]:
    log = folder / "effects"
    return sorted(log.read_text().split()) if log.exists() else []


async def test_two_calls_are_answered_by_id(server: str, folder: Path) -> None:
    client = get_client(url=server)
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "supervisor", input=GIVEN)
    state: Any = await client.threads.get_state(thread)
    asked = {found["value"]["args"]["order_id"]: found for found in state["interrupts"]}
    assert set(asked) == {"ORD-551", "ORD-552"}
    assert effects(folder) == []
    assert asked["ORD-551"]["value"]["step_id"] == "1"
    assert (await client.threads.get(thread))["status"] == "interrupted"

    refusal = {asked["ORD-552"]["id"]: {"type": "reject", "message": "not mine"}}
    await client.runs.wait(thread, "supervisor", command={"resume": refusal})
    state = await client.threads.get_state(thread)
    assert [found["id"] for found in state["interrupts"]] == [asked["ORD-551"]["id"]]
    assert effects(folder) == []

    approval = {asked["ORD-551"]["id"]: {"type": "approve", "hash": asked["ORD-551"]["value"]["hash"]}}
    done: Any = await client.runs.wait(thread, "supervisor", command={"resume": approval})
    assert effects(folder) == ["ORD-551"]
    assert [done["results"][i]["status"] for i in "12"] == ["done", "failed"]
    assert "not mine" in done["results"]["2"]["error"]


async def test_a_client_may_ask_to_be_asked_about_more_but_not_about_less(server: str, folder: Path) -> None:
    client = get_client(url=server)
    before = effects(folder)
    for approval in ("always", "never"):
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "supervisor", input=GIVEN, context={"approval": approval})
        state: Any = await client.threads.get_state(thread)
        assert len(state["interrupts"]) == 2
        assert ("not authenticated" in state["values"]["plan"]["note"]) == (approval == "never")
    assert effects(folder) == before


async def test_studio_shows_the_setting_beside_the_step(server: str) -> None:
    client = get_client(url=server)
    (assistant,) = await client.assistants.search(graph_id="supervisor")
    schemas: Any = await client.assistants.get_schemas(assistant["assistant_id"])
    shown = schemas["context_schema"]["properties"]["approval"]
    assert (shown["enum"], shown["default"]) == (["always", "risky", "never"], "risky")
    assert shown["langgraph_nodes"] == ["step"]
