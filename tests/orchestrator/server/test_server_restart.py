"""A LangGraph server that is stopped in the middle of runs, and started again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from served import running, served

pytestmark = pytest.mark.server

RISKY = "Add a note with the text 'hello there'. Convert 3 miles to kilometers."
LONG = "Convert 3 miles to kilometers. Compile the long report with seconds 3."


async def finished(client: Any, thread: str) -> Any:
    """The state of a thread once nothing runs in it."""
    while (await client.threads.get(thread))["status"] == "busy":
        await asyncio.sleep(0.2)
    return await client.threads.get_state(thread)


async def test_threads_and_runs_survive_a_restart(tmp_path: Path) -> None:
    server = served(tmp_path)
    with running(server):
        client: Any = get_client(url=server.url)
        asked, cut = [(await client.threads.create())["thread_id"] for _ in range(2)]
        await client.runs.wait(asked, "supervisor", input={"messages": RISKY})
        before = (await client.threads.get_state(asked))["interrupts"]
        await client.runs.create(cut, "supervisor", input={"messages": LONG})
        while not (tmp_path / "begun.txt").exists():
            await asyncio.sleep(0.1)
    with running(server):
        client = get_client(url=server.url)
        state = await client.threads.get_state(asked)
        assert [one["id"] for one in state["interrupts"]] == [one["id"] for one in before]
        answers = {one["id"]: {"type": "approve"} for one in before}
        state = await client.runs.wait(asked, "supervisor", command={"resume": answers})
        assert [state["results"][i]["status"] for i in "12"] == ["done", "done"]
        values = (await finished(client, cut))["values"]
        assert [values["results"][i]["status"] for i in "12"] == ["done", "done"]
    assert (tmp_path / "notes.txt").read_text() == "note: hello there\n"
