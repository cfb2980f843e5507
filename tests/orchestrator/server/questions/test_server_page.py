"""The page of the LangGraph server: a request is started, watched, decided, continued and stopped by its routes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from langgraph_server import DevServer
from servers import HANG

pytestmark = pytest.mark.server
HEADERS = {"x-callsheet-key": "page"}


class Page:
    """Does what the page does."""

    def __init__(self, server: DevServer, http: httpx.AsyncClient) -> None:
        self._api, self._http = f"{server.url}/callsheet/api", http

    async def send(self, name: str, **given: Any) -> str:
        answer = await self._http.post(f"{self._api}/{name}", json=given, headers=HEADERS)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["thread"])

    async def watch(self, thread: str) -> list[Any]:
        """The states of the run, until it ends or waits."""
        told: list[Any] = []
        given: Any = {"params": {"id": thread}, "headers": HEADERS}
        async with self._http.stream("GET", f"{self._api}/watch", **given) as stream:
            async for line in stream.aiter_lines():
                told += [json.loads(line[6:])] if line.startswith("data: ") and line != "data: {}" else []
        return told

    async def run(self, thread: str) -> Any:
        answer = await self._http.get(f"{self._api}/run", params={"id": thread})
        return answer.json()


async def test_a_request_is_watched_and_decided_in_the_page_of_the_server(server: DevServer, folder: Path) -> None:
    async with httpx.AsyncClient(timeout=HANG) as http:
        page = Page(server, http)
        thread = await page.send("start", text="Convert 3 miles to kilometers. Add a note with the text 'seen'")
        told = await page.watch(thread)
        last = told[-1]
        assert (last["status"], [step["status"] for step in last["steps"]]) == ("waiting", ["done", "needs_approval"])
        (question,) = last["questions"]
        assert json.loads(question["args"]) == {"text": "seen"}
        action = {"name": question["name"], "args": {"text": "changed"}}
        edit = {"type": "edit", "edited_action": action, "hash": question["hash"]}
        await page.send("resume", thread=thread, answers={question["id"]: edit})
        (again,) = (await page.watch(thread))[-1]["questions"]
        assert json.loads(again["args"]) == {"text": "changed"}
        await page.send("resume", thread=thread, answers={again["id"]: {"type": "approve", "hash": again["hash"]}})
        done = (await page.watch(thread))[-1]
        assert done["status"] == "done"
        assert "noted: changed" in done["answer"]
        assert "note: changed" in (folder / "notes.txt").read_text()
        await page.send("start", thread=thread, text="Convert 4 miles to kilometers")
        assert "6.437" in (await page.watch(thread))[-1]["answer"]
        second, first = await page.run(thread)
        assert "6.437" in second["answer"]
        assert "noted: changed" in first["answer"]


async def test_a_run_of_the_server_is_stopped_and_goes_on(server: DevServer) -> None:
    async with httpx.AsyncClient(timeout=HANG) as http:
        page = Page(server, http)
        thread = await page.send("start", text="Compile the long report of 4 seconds")
        watching = asyncio.create_task(page.watch(thread))
        await asyncio.sleep(1.5)
        given: Any = {"json": {"text": "more", "thread": thread}, "headers": HEADERS}
        refused = await http.post(f"{server.url}/callsheet/api/start", **given)
        assert refused.status_code == 409
        await page.send("cancel", thread=thread)
        told = await watching
        assert any(step["status"] == "running" for run in told for step in run["steps"])
        assert told[-1]["status"] == "stopped"
        assert (await page.run(thread))[0]["status"] == "stopped"
        assert (await http.post(f"{server.url}/callsheet/api/start", json={"text": "x"})).status_code == 403
