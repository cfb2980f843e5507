"""Requirement 10: secrets never get into state, checkpoints, logs, errors, the catalog or the text that is embedded."""

from __future__ import annotations

import base64
import json
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from callsheet import AgentGraphRetriever, Settings, create_supervisor
from callsheet.agents import ToolRegistry
from callsheet.agents.calls.review import decision_on, flat
from callsheet.graphs import Loaded, Policy, dump, load
from callsheet.orchestrator.cli.main import main
from deciding_model import own_steps
from scripted_model import ScriptedModel, calls, planned
from servers import until

SERVER = Path(__file__).parents[3] / "fixtures" / "leaky_server.py"
ENV, VARIABLE, HEADER, QUERY = "CANARY-env-7f3a", "CANARY/var+8b2c", "CANARY-header-9d4e", "CANARY-query-1a5b"
ARGUMENT, NESTED = "CANARY-argument-2c6d", "CANARY-nested-3e7f"
CONFIGURED = (ENV, VARIABLE, HEADER, QUERY)
ALL = (*CONFIGURED, ARGUMENT, NESTED)
SAY, REFUSE, DIE = "say a text aloud", "refuse another text", "die of a third text"
ARGS = {"api_key": ARGUMENT, "login": {"user": "ann", "password": NESTED}, "text": "hello"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


@dataclass
class Leaky:
    """Two leaky servers, one over stdio and one over HTTP."""

    folder: Path
    config: Path

    @property
    def received(self) -> list[Any]:
        log = self.folder / "outside" / "log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def leaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leaky]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    (tmp_path / "outside").mkdir()
    log = str(tmp_path / "outside" / "log")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), log, str(port)])
    monkeypatch.setenv("LEAKY_SECRET", VARIABLE)
    until_it_listens(port)
    stdio = {"command": sys.executable, "args": [str(SERVER), log], "env": {"TOKEN": ENV, "OTHER": "${LEAKY_SECRET}"}}
    http = {"url": f"http://127.0.0.1:{port}/mcp?token={QUERY}", "headers": {"Authorization": f"Bearer {HEADER}"}}
    config = tmp_path / "outside" / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"local": stdio, "remote": http}}))
    yield Leaky(tmp_path, config)
    process.kill()
    process.wait()


def until_it_listens(port: int) -> None:
    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    assert until(listens)


def leaks(text: str, secrets: tuple[str, ...] = ALL) -> list[str]:
    forms = {form: s for s in secrets for form in (s, json.dumps(s)[1:-1], base64.b64encode(s.encode()).decode())}
    return sorted({secret for form, secret in forms.items() if form in text})


def in_files(folder: Path, secrets: tuple[str, ...] = ALL) -> dict[str, list[str]]:
    found = {str(file): leaks(file.read_bytes().decode("latin-1"), secrets) for file in files(folder)}
    return {name: said for name, said in found.items() if said}


def files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and "outside" not in file.parts]


def worker(server: str) -> ScriptedModel:
    names = {SAY: f"{server}_say", REFUSE: f"{server}_refuse", DIE: f"{server}_die"}

    def reply(messages: Any) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            said = f"It said {messages[-1].text}, and the key is {ARGUMENT}."
            failed = messages[-1].status == "error"
            return calls("finish", status="cannot", answer=said) if failed else AIMessage(said)
        asked = own_steps(messages[-1].text).splitlines()[0]
        (name,) = (name for text, name in names.items() if text in asked)
        return calls(name, **ARGS)

    return ScriptedModel(replies=[reply])


def supervisor(loaded: Loaded, server: str, *steps: str) -> Any:
    plan = planned(*((str(n), step, []) for n, step in enumerate(steps, 1)))
    settings = Settings(tools=2)  # fewer than an agent has: a single small agent is not planned for
    return create_supervisor(
        loaded, planner_model=ScriptedModel(replies=[plan]), worker_model=worker(server), settings=settings
    )


class Tracer(BaseCallbackHandler):
    """Everything that a trace gets, but for the runs of the chat model."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **more: Any) -> None:
        self.told.append(("chain", inputs, more))

    def on_chain_end(self, outputs: Any, **more: Any) -> None:
        self.told.append(("chain ends", outputs, more))

    def on_tool_start(self, serialized: Any, input_str: Any, **more: Any) -> None:
        self.told.append(("tool", serialized, input_str, more))

    def on_tool_end(self, output: Any, **more: Any) -> None:
        self.told.append(("tool ends", output, more))

    def on_tool_error(self, error: Any, **more: Any) -> None:
        self.told.append(("tool fails", error, more))

    def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
        self.told.append((name, data, more))


async def to_the_end(
    app: Any, request: str, edits: dict[str, Any] | None = None, tracer: Tracer | None = None
) -> tuple[list[Any], Any]:
    """Everything that is streamed, with every question approved, or edited first; and the state at the end."""
    given: Any = {"messages": [HumanMessage(request)]}
    told: list[Any] = []
    while True:
        modes = ["values", "updates", "custom", "messages", "debug"]
        config = {**THREAD, "callbacks": [tracer] if tracer else []}
        told += [chunk async for chunk in app.astream(given, config, stream_mode=modes, subgraphs=True)]
        state = await app.aget_state(THREAD, subgraphs=True)
        if not state.interrupts:
            return told, state
        told.append(state)
        answers: dict[str, Any] = {}
        for found in state.interrupts:
            kind = "reject" if found.value["type"] == "unknown_outcome" else "approve"
            edit, edits = edits, None
            more = {"args": {**flat(found.value)["args"], **edit}} if edit else {}
            answers[found.id] = decision_on("edit" if edit else kind, found.value, **more)
        given = Command(resume=answers)


def test_no_secret_is_in_the_catalog_or_in_any_stored_file(leaky: Leaky) -> None:
    loaded = load(leaky.config, yes=True)
    assert {agent.id: len(agent.tools) for agent in loaded.catalog.agents} == {"local": 3, "remote": 3}
    AgentGraphRetriever.from_catalog(loaded)
    (leaky.folder / "catalog.json").write_text(dump(loaded.catalog))
    assert "It knows" in (leaky.folder / "catalog.json").read_text()
    assert len(files(leaky.folder)) > 3
    assert in_files(leaky.folder) == {}
    assert leaks(repr(loaded.catalog)) == []


@pytest.mark.parametrize("server", ["local", "remote"])
async def test_a_run_keeps_and_tells_no_secret(
    leaky: Leaky, server: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    (other,) = {"local", "remote"} - {server}  # has the same tools, of which one copy is offered
    loaded = load(leaky.config, yes=True, policy=Policy(default="allow", deny=(other,)))
    async with AsyncSqliteSaver.from_conn_string(str(leaky.folder / "runs.sqlite")) as saver:
        app = supervisor(loaded, server, SAY, REFUSE).compile(checkpointer=saver)
        tracer = Tracer()
        told, state = await to_the_end(app, f"Please {SAY} and {REFUSE}", tracer=tracer)
    assert sorted(leaky.received, key=str) == [["refuse", ARGS], ["say", ARGS]]
    results = state.values["results"]
    assert [results[i]["status"] for i in "12"] == ["done", "failed"]
    assert results["1"]["calls"][0]["args"]["text"] == "hello"
    assert results["1"]["calls"][0]["args"]["api_key"].startswith("secret:")
    assert "***" in results["1"]["calls"][0]["output"]
    assert {"chain", "chain ends", "tool", "tool ends"} <= {kind for kind, *_ in tracer.told}
    assert leaks(repr(tracer.told)) == []
    assert leaks(repr(told)) == []
    assert leaks(repr(state)) == []
    assert in_files(leaky.folder) == {}
    assert leaks(caplog.text) == []
    assert leaks("".join(capfd.readouterr())) == []


async def test_last_words_of_a_server_hold_no_secret(leaky: Leaky) -> None:
    loaded = load(leaky.config, yes=True)
    async with AsyncSqliteSaver.from_conn_string(str(leaky.folder / "runs.sqlite")) as saver:
        app = supervisor(loaded, "local", DIE).compile(checkpointer=saver)
        told, state = await to_the_end(app, f"Please {DIE}")
    result = state.values["results"]["1"]
    assert result["status"] == "outcome_unknown"
    assert "Its last words" in result["error"]
    assert leaks(repr(told)) == []
    assert in_files(leaky.folder) == {}


async def test_a_person_who_edits_keeps_the_secrets_without_seeing_them(leaky: Leaky) -> None:
    loaded = load(leaky.config, yes=True)
    async with AsyncSqliteSaver.from_conn_string(str(leaky.folder / "runs.sqlite")) as saver:
        app = supervisor(loaded, "local", SAY).compile(checkpointer=saver)
        told, _ = await to_the_end(app, f"Please {SAY}", {"text": "goodbye"})
    assert leaky.received == [["say", {**ARGS, "text": "goodbye"}]]
    assert leaks(repr(told)) == []
    assert in_files(leaky.folder) == {}


async def test_a_secret_that_was_forgotten_is_asked_for_and_nothing_is_sent(leaky: Leaky) -> None:
    loaded = load(leaky.config, yes=True)
    async with AsyncSqliteSaver.from_conn_string(str(leaky.folder / "runs.sqlite")) as saver:
        first = supervisor(loaded, "local", SAY).compile(checkpointer=saver)
        state = await first.ainvoke({"messages": [HumanMessage(f"Please {SAY}")]}, THREAD)
        answers = {found.id: {"type": "approve"} for found in state["__interrupt__"]}
        another_program = supervisor(loaded, "local", SAY).compile(checkpointer=saver)
        state = await another_program.ainvoke(Command(resume=answers), THREAD)
    assert leaky.received == []
    assert "a secret argument is not stored when the program ends" in state["results"]["1"]["calls"][0]["error"]


def test_the_command_line_shows_no_secret(leaky: Leaky, capfd: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["ask", "say hello aloud with the key k-1", "--approval", "never", "--json"],
        ["ask", "say hello aloud with the key k-1", "--approval", "never"],
        ["retrieve", "say a text aloud", "--explain"],
        ["export", "--format", "json"],
        ["check"],
    ):
        with pytest.raises(SystemExit):
            main([*command, "--catalog", str(leaky.config), "--yes"])
        out, err = capfd.readouterr()
        assert "local" in out + err
        assert leaks(out + err) == [], command
    assert in_files(leaky.folder, CONFIGURED) == {}


async def test_a_placeholder_opens_nothing_but_a_secret_argument(leaky: Leaky) -> None:
    loaded = load(leaky.config, yes=True)
    registry = ToolRegistry.from_catalog(loaded)
    run = registry.secrets.of("run")
    schema = loaded.catalog.tool("local/say").input_schema
    masked = run.masked(schema, ARGS)
    stolen = {"api_key": "x", "text": masked["api_key"]}
    bound = registry.bind(["local/say"], "run")["local_say"]
    await bound.ainvoke(stolen)
    await registry.close_run("run")
    assert leaky.received == [["say", stolen]]
