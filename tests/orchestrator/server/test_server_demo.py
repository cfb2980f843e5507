"""``langgraph dev`` over the demo's catalog, with MCP servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from langgraph_server import BIN, DevServer
from served import ROOT, pinged, running

pytestmark = [pytest.mark.server, pytest.mark.slow]

CATALOG = "examples/demo/mcp.json,examples.demo.toolkits:agents"
QUESTION = (ROOT / "examples/demo/question.txt").read_text(encoding="utf-8").strip()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    if not (BIN / "uvx").exists() or not (BIN.parent / ".demo").exists():
        pytest.skip("the demo's MCP servers are not set up: run `make test`")
    env = {
        "CALLSHEET_HOME": str(tmp_path_factory.mktemp("home")),
        "CALLSHEET_WORKSPACE": str(tmp_path_factory.mktemp("workspace")),
        "CALLSHEET_CATALOG": CATALOG,
        "CALLSHEET_APPROVAL": "never",
        "CALLSHEET_ALLOW": "files/write_file",
        "CALLSHEET_YES": "1",
        "LANGGRAPH_DISABLE_FILE_PERSISTENCE": "true",
    }
    log = tmp_path_factory.mktemp("log") / "server.log"
    with running(DevServer(ROOT, ROOT / "langgraph.json", log, env)) as started:
        yield started


async def test_the_server_answers_the_demo_question(server: DevServer) -> None:
    async with pinged(server.url) as pings:
        given: Any = {"messages": QUESTION}
        state: Any = await get_client(url=server.url).runs.wait(None, "supervisor", input=given)
    assert [state["results"][i]["status"] for i in "123"] == ["done"] * 3
    written = Path(server.env["CALLSHEET_WORKSPACE"]) / "trip.txt"
    assert "42.16" in written.read_text(encoding="utf-8")
    assert pings.slowest() < 0.5
    answer = state["messages"][-1].get("content")
    assert "42.16" in answer
    assert "Tokyo" in answer
