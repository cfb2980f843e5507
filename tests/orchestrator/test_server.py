"""``langgraph dev`` with the demo's catalog, driven through ``langgraph_sdk``."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CATALOG = "examples/demo/mcp.json,examples.demo.toolkits:agents"
QUESTION = (ROOT / "examples/demo/question.txt").read_text(encoding="utf-8").strip()
START_SECONDS = 90


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    if not (BIN / "uvx").exists() or not (BIN.parent / ".demo").exists():
        pytest.skip("the demo's MCP servers are not set up: run `make test`")
    return {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "CALLSHEET_HOME": str(tmp_path_factory.mktemp("home")),
        "CALLSHEET_WORKSPACE": str(tmp_path_factory.mktemp("workspace")),
        "CALLSHEET_CATALOG": CATALOG,
        "CALLSHEET_YES": "1",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGSMITH_TRACING": "false",
        "ANONYMIZED_TELEMETRY": "False",
    }


@pytest.fixture(scope="module")
def server(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("log") / "server.log"
    with log.open("w") as sink:
        process = subprocess.Popen(
            [str(BIN / "langgraph"), "dev", "--port", str(port), "--no-browser", "--no-reload"],
            cwd=ROOT,
            env=environment,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ok", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


async def test_serves_the_graphs_with_their_schemas(server: str) -> None:
    client = get_client(url=server)
    found = {a["graph_id"]: a["assistant_id"] for a in await client.assistants.search()}
    assert {"supervisor", "retriever", "arag"} <= set(found)
    for graph, given, back in (
        ("supervisor", {"messages"}, {"messages", "plan", "results"}),
        ("retriever", {"query"}, {"selection"}),
        ("arag", {"messages"}, {"messages", "citations", "loops", "retrieved_tokens"}),
    ):
        schemas: dict[str, Any] = dict(await client.assistants.get_schemas(found[graph]))
        assert set(schemas["input_schema"]["properties"]) == given
        assert set(schemas["output_schema"]["properties"]) == back
        assert schemas["state_schema"] is not None
        assert {"model", "agents", "tools", "replans"} <= set(schemas["context_schema"]["properties"])


async def test_answers_the_demo_question_as_the_command_line_does_and_stays_responsive(
    server: str, environment: dict[str, str]
) -> None:
    pings: list[float] = []

    async def ping() -> None:
        async with httpx.AsyncClient() as http:
            while True:
                began = time.monotonic()
                await http.get(f"{server}/ok")
                pings.append(time.monotonic() - began)
                await asyncio.sleep(0.02)

    pinging = asyncio.create_task(ping())
    try:
        given: Any = {"messages": [{"role": "user", "content": QUESTION}]}
        state: Any = await get_client(url=server).runs.wait(None, "supervisor", input=given)
    finally:
        pinging.cancel()
    catalogs = [word for name in CATALOG.split(",") for word in ("--catalog", name)]
    arguments = ["ask", QUESTION, "--yes", "--json", *catalogs]
    asked = subprocess.run(
        [str(BIN / "callsheet"), *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert state["messages"][-1]["content"] == json.loads(asked.stdout)["answer"]
    assert [state["results"][i]["status"] for i in "1234"] == ["done"] * 4
    assert "42.16" in (Path(environment["CALLSHEET_WORKSPACE"]) / "trip.txt").read_text()
    assert sorted(pings)[int(len(pings) * 0.99)] < 0.2


async def test_the_retriever_graph_says_why(server: str) -> None:
    state: Any = await get_client(url=server).runs.wait(None, "retriever", input={"query": QUESTION})
    assert state["selection"]["verdict"] == "found"
    assert state["selection"]["trace"]["nodes"]


async def test_a_thread_keeps_its_conversation(server: str) -> None:
    client = get_client(url=server)
    thread = await client.threads.create()
    state: Any = {}
    for _ in range(2):
        given: Any = {"messages": [{"role": "user", "content": "Convert 3 miles to kilometers"}]}
        state = await client.runs.wait(thread["thread_id"], "supervisor", input=given)
    assert len(state["messages"]) == 4


async def test_documents_that_are_not_configured_stop_nothing(server: str) -> None:
    given: Any = {"messages": [{"role": "user", "content": "How many days of leave are there?"}]}
    state: Any = await get_client(url=server).runs.wait(None, "arag", input=given)
    assert "set CALLSHEET_DOCUMENTS" in state["messages"][-1]["content"]
