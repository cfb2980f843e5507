"""The page of the LangGraph server: a request is started, watched, decided, continued and stopped by its routes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from explored_page import sent, shown, watched
from langgraph_server import DevServer
from servers import HANG

pytestmark = pytest.mark.server


@pytest.fixture
def client(server: DevServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers={"x-callsheet-key": "page"}, timeout=HANG) as client:
        yield client


def test_a_request_is_watched_and_decided_in_the_page_of_the_server(client: httpx.Client, folder: Path) -> None:
    thread = sent(client, "start", text="Convert 3 miles to kilometers. Add a note with the text 'seen'")
    last = watched(client, thread)[-1]
    assert (last["status"], [step["status"] for step in last["steps"]]) == ("waiting", ["done", "needs_approval"])
    (question,) = last["questions"]
    assert json.loads(question["args"]) == {"text": "seen"}
    action = {"name": question["name"], "args": {"text": "changed"}}
    edit = {"type": "edit", "edited_action": action, "hash": question["hash"]}
    sent(client, "resume", thread=thread, answers={question["id"]: edit})
    (again,) = watched(client, thread)[-1]["questions"]
    assert json.loads(again["args"]) == {"text": "changed"}
    sent(client, "resume", thread=thread, answers={again["id"]: {"type": "approve", "hash": again["hash"]}})
    done = watched(client, thread)[-1]
    assert done["status"] == "done"
    assert "noted: changed" in done["answer"]
    assert "note: changed" in (folder / "notes.txt").read_text()
    sent(client, "start", thread=thread, text="Convert 4 miles to kilometers")
    assert "6.437" in watched(client, thread)[-1]["answer"]
    second, first = shown(client, thread)
    assert "6.437" in second["answer"]
    assert "noted: changed" in first["answer"]


def test_a_run_of_the_server_is_stopped_and_goes_on(client: httpx.Client) -> None:
    thread = sent(client, "start", text="Compile the long report of 4 seconds")
    told: list[Any] = []
    watching = threading.Thread(target=lambda: told.extend(watched(client, thread)))
    watching.start()
    time.sleep(1.5)
    sent(client, "start", 409, thread=thread, text="more")
    sent(client, "cancel", thread=thread)
    watching.join(HANG)
    assert any(step["status"] == "running" for run in told for step in run["steps"])
    assert told[-1]["status"] == "stopped"
    assert shown(client, thread)[0]["status"] == "stopped"
    del client.headers["x-callsheet-key"]
    sent(client, "start", 403, text="x")
