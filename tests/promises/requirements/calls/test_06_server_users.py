"""Requirement 6 on a LangGraph server: the authenticated user decides what is seen; nobody can pose as another."""

from __future__ import annotations

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

pytestmark = pytest.mark.server

LANGGRAPH = Path(sys.executable).parent / "langgraph"
START_SECONDS = 180
AUTH = """
from langgraph_sdk import Auth

auth = Auth()

@auth.authenticate
async def who(authorization: str | None) -> Auth.types.MinimalUserDict:
    if not authorization:
        raise Auth.exceptions.HTTPException(status_code=401, detail="who are you?")
    return {"identity": authorization, "groups": ["staff"] if authorization == "zoe" else [], "permissions": []}
"""
POLICY = {
    "default": "deny",
    "allow": ["files"],
    "users": {"ann": {"allow": ["shell"]}},
    "groups": {"staff": {"allow": ["mail"]}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not LANGGRAPH.exists():
        pytest.skip("langgraph-cli is not installed: run the checks with make test")
    folder = tmp_path_factory.mktemp("server")
    graphs = {"retriever": {"path": "callsheet.orchestrator.app:retriever"}}
    config = {"dependencies": ["."], "graphs": graphs, "auth": {"path": "./auth.py:auth"}}
    (folder / "langgraph.json").write_text(json.dumps(config))
    (folder / "auth.py").write_text(AUTH)
    (folder / "policy.json").write_text(json.dumps(POLICY))
    (folder / "catalog").mkdir()
    for agent in ("files", "shell", "mail"):
        tool = {"name": f"use_{agent}", "description": f"Uses the {agent}.", "inputSchema": {"type": "object"}}
        (folder / "catalog" / f"{agent}.json").write_text(json.dumps({"name": agent, "tools": [tool]}))
    environment = {
        **os.environ,
        "CALLSHEET_HOME": str(folder / "home"),
        "CALLSHEET_CATALOG": str(folder / "catalog"),
        "CALLSHEET_POLICY": str(folder / "policy.json"),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGSMITH_TRACING": "false",
        "ANONYMIZED_TELEMETRY": "False",
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(LANGGRAPH), "dev", "--port", str(port), "--no-browser", "--no-reload"]
    with (folder / "log").open("w") as sink:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=sink, stderr=subprocess.STDOUT)
    try:
        yield _ready(process, f"http://127.0.0.1:{port}", folder / "log")
    finally:
        process.terminate()
        process.wait(60)


def _ready(process: subprocess.Popen[bytes], url: str, log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/ok", timeout=2, verify=False).status_code == 200:
                return url
        except httpx.HTTPError:
            time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")


def seen(url: str, user: str, **more: Any) -> set[str]:
    request = {"assistant_id": "retriever", "input": {"query": "use the shell, the mail and the files"}, **more}
    answer = httpx.post(f"{url}/runs/wait", json=request, headers={"Authorization": user}, timeout=60)
    return {agent["id"] for agent in answer.raise_for_status().json()["selection"]["agents"]}


@pytest.mark.parametrize(
    ("user", "agents"), [("ann", {"files", "shell"}), ("eve", {"files"}), ("zoe", {"files", "mail"})]
)
def test_the_authenticated_user_decides(server: str, user: str, agents: set[str]) -> None:
    assert seen(server, user) == agents


@pytest.mark.parametrize("place", ["config", "context"])
def test_no_client_can_pose_as_another_user(server: str, place: str) -> None:
    forged = {"langgraph_auth_user": {"identity": "ann"}, "langgraph_auth_permissions": ["staff"]}
    assert seen(server, "eve", **{place: {"configurable": forged} if place == "config" else forged}) == {"files"}


def test_no_client_can_bring_a_policy(server: str) -> None:
    request = {"assistant_id": "retriever", "input": {"query": "use the shell"}, "context": {"policy": "other.json"}}
    answer = httpx.post(f"{server}/runs/wait", json=request, headers={"Authorization": "eve"}, timeout=60)
    assert "shell" not in answer.text.replace("use the shell", "")
