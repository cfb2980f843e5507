"""Calls that wait for a person on the LangGraph server, answered through ``langgraph_sdk``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from langgraph_server import DevServer

pytestmark = pytest.mark.server

QUESTION = "Look up the status of order ORD-551 and look up the status of order ORD-552"
GIVEN: Any = {"messages": [{"role": "user", "content": QUESTION}]}
ALL: Any = {"questions": "all"}


def effects(folder: Path) -> list[str]:
    log = folder / "effects.txt"
    return sorted(log.read_text().split()) if log.exists() else []


async def test_two_calls_are_answered_by_id(server: DevServer, folder: Path) -> None:
    client = get_client(url=server.url)
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "supervisor", input=GIVEN, context=ALL)
    state: Any = await client.threads.get_state(thread)
    asked = {found["value"]["action_requests"][0]["args"]["order_id"]: found for found in state["interrupts"]}
    assert set(asked) == {"ORD-551", "ORD-552"}
    assert effects(folder) == []
    assert asked["ORD-551"]["value"]["step_id"] == "1"
    assert (await client.threads.get(thread))["status"] == "interrupted"

    refusal = {asked["ORD-552"]["id"]: {"decisions": [{"type": "reject", "message": "not mine"}]}}
    await client.runs.wait(thread, "supervisor", command={"resume": refusal}, context=ALL)
    state = await client.threads.get_state(thread)
    assert [found["id"] for found in state["interrupts"]] == [asked["ORD-551"]["id"]]
    assert effects(folder) == []

    approval = {asked["ORD-551"]["id"]: {"decisions": [{"type": "approve"}]}}
    done: Any = await client.runs.wait(thread, "supervisor", command={"resume": approval})
    assert effects(folder) == ["ORD-551"]
    assert [done["results"][i]["status"] for i in "12"] == ["done", "failed"]
    assert "not mine" in done["results"]["2"]["error"]


async def test_one_question_after_the_other_is_answered_without_an_id(server: DevServer, folder: Path) -> None:
    """As Agent Chat UI answers: what it shows is the only question that waits."""
    client, before = get_client(url=server.url), effects(folder)
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "supervisor", input=GIVEN)
    approved = []
    while waiting := (await client.threads.get_state(thread))["interrupts"]:
        (question,) = waiting
        approved.append(question["value"]["action_requests"][0]["args"]["order_id"])
        await client.runs.wait(thread, "supervisor", command={"resume": {"decisions": [{"type": "approve"}]}})
        assert effects(folder) == sorted([*before, *approved])
    assert sorted(approved) == ["ORD-551", "ORD-552"]
