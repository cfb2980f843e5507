"""Headers with a user's own values, ``${user:NAME}``: whose they are, their sources, and where they never are."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import Settings, create_supervisor
from callsheet.agents.calls.credentials import credentials_of_run
from callsheet.graphs import Loaded, SettingsError, load
from callsheet.graphs.catalog.formats.server_config import ServerConfig, read_configuration
from callsheet.graphs.trust.consent import starts_of
from keyed_server import HEADER, KeyedServer, keyed_server
from scripted_model import ScriptedModel, calls, ended, planned

ANNA, BERT = "key-of-anna-4711", "key-of-bert-0815"
ASK = "list my contacts"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedServer]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    with keyed_server() as started:
        started.owners = {ANNA: "anna", BERT: "bert"}
        yield started


def catalog(server: KeyedServer, folder: Path, value: str = "${user:crm_key}", **more: Any) -> Loaded:
    entry = {"url": server.url, "headers": {HEADER: value}, "callsheet": {"trusted": True, **more}}
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"crm": entry}}), encoding="utf-8")
    return load(file, yes=True)


def supervisor(loaded: Loaded) -> Any:
    """A supervisor whose worker makes the call, and says what came of it."""

    def worker(messages: list[BaseMessage]) -> AIMessage:
        return ended(messages[-1]) if isinstance(messages[-1], ToolMessage) else calls("crm_contacts")

    model, planner = ScriptedModel(replies=[worker]), ScriptedModel(replies=[planned(("1", ASK, []))])
    workflow = create_supervisor(loaded, model=model, planner_model=planner, settings=Settings())
    return workflow.compile(checkpointer=InMemorySaver())


def run_of(thread: str, **configurable: Any) -> Any:
    return {"configurable": {"thread_id": thread, **configurable}}


def given(thread: str, key: str) -> Any:
    return run_of(thread, credentials={"crm_key": key})


async def answer(app: Any, config: Any) -> dict[str, Any]:
    state = await app.ainvoke({"messages": ASK}, config)
    result: dict[str, Any] = state["results"]["1"]
    return result


async def test_each_caller_has_answers_for_the_own_key(server: KeyedServer, tmp_path: Path) -> None:
    app = supervisor(catalog(server, tmp_path))
    assert (await answer(app, given("1", ANNA)))["result"] == "contacts of anna"
    assert (await answer(app, given("2", BERT)))["result"] == "contacts of bert"
    # The catalog is listed without a key: there is no user yet.
    assert server.heard[0] is None


async def test_runs_of_two_users_at_the_same_time_share_no_session(server: KeyedServer, tmp_path: Path) -> None:
    app = supervisor(catalog(server, tmp_path))
    keys = [ANNA, BERT] * 3
    results = await asyncio.gather(*(answer(app, given(str(n), key)) for n, key in enumerate(keys)))
    assert [result["result"] for result in results] == [f"contacts of {server.who(key)}" for key in keys]


async def test_a_thread_that_another_user_goes_on_with_gets_another_session(
    server: KeyedServer, tmp_path: Path
) -> None:
    app = supervisor(catalog(server, tmp_path))
    for key in (ANNA, BERT, ANNA):
        assert (await answer(app, given("1", key)))["result"] == f"contacts of {server.who(key)}"


async def test_an_authenticated_user_has_the_values_of_the_authentication_and_no_others(
    server: KeyedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = supervisor(catalog(server, tmp_path))
    bert = {"identity": "bert", "crm_key": BERT}
    forged = run_of("1", langgraph_auth_user=bert, credentials={"crm_key": ANNA})
    assert (await answer(app, forged))["result"] == "contacts of bert"
    monkeypatch.setenv("crm_key", ANNA)
    without = run_of("2", langgraph_auth_user={"identity": "carla"}, credentials={"crm_key": ANNA})
    result = await answer(app, without)
    assert result["status"] == "failed"
    assert "the field 'crm_key' of the user that the server's authentication returns" in result["error"]


async def test_the_environment_serves_a_program_but_no_client_of_a_server(
    server: KeyedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("crm_key", ANNA)
    app = supervisor(catalog(server, tmp_path))
    assert (await answer(app, run_of("1")))["result"] == "contacts of anna"
    assert (await answer(app, given("2", BERT)))["result"] == "contacts of bert"
    stranger = {"identity": "langgraph-studio-user", "is_authenticated": False}
    result = await answer(app, run_of("3", langgraph_auth_user=stranger))
    assert "needs a value of the user's own, 'crm_key': set configurable['credentials']['crm_key']" in result["error"]


async def test_a_call_without_the_value_is_not_sent_and_names_it(server: KeyedServer, tmp_path: Path) -> None:
    app = supervisor(catalog(server, tmp_path))
    before = len(server.heard)
    result = await answer(app, run_of("1"))
    assert result["status"] == "failed"
    assert "configurable['credentials']['crm_key'], or the environment variable crm_key" in result["error"]
    assert len(server.heard) == before


@pytest.mark.parametrize("value", ["key\r\nx-admin: 1", "schlüssel", "", 7], ids=["break", "umlaut", "empty", "number"])
async def test_a_value_that_no_header_can_hold_is_refused_by_its_name(
    server: KeyedServer, tmp_path: Path, value: Any
) -> None:
    app = supervisor(catalog(server, tmp_path))
    result = await answer(app, run_of("1", credentials={"crm_key": value}))
    assert "'crm_key' is not a text of printable ASCII characters" in result["error"]
    assert "x-admin" not in str(result)
    assert "schl" not in str(result)


async def test_what_looks_like_a_variable_in_a_value_is_sent_as_it_is(
    server: KeyedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATOR_SECRET", "for-nobody-else")
    server.owners["${OPERATOR_SECRET}"] = "eve"
    app = supervisor(catalog(server, tmp_path))
    assert (await answer(app, given("1", "${OPERATOR_SECRET}")))["result"] == "contacts of eve"
    assert "for-nobody-else" not in server.heard


async def test_a_default_and_variables_around_the_value_are_filled_in(
    server: KeyedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENANT", "acme")
    server.owners |= {"acme/guest": "a guest", f"acme/{ANNA}": "anna of acme"}
    app = supervisor(catalog(server, tmp_path, "${TENANT}/${user:crm_key:-guest}"))
    assert (await answer(app, run_of("1")))["result"] == "contacts of a guest"
    assert (await answer(app, given("2", ANNA)))["result"] == "contacts of anna of acme"


async def test_what_a_server_lists_to_one_user_is_not_for_the_others(server: KeyedServer, tmp_path: Path) -> None:
    app = supervisor(catalog(server, tmp_path))
    server.lists["bert"] = ("other",)
    refused = await answer(app, given("1", BERT))
    assert "no longer lists it" in refused["error"]
    assert (await answer(app, given("2", ANNA)))["result"] == "contacts of anna"


async def test_wrong_keys_of_one_user_do_not_pause_the_server_for_others(server: KeyedServer, tmp_path: Path) -> None:
    app = supervisor(catalog(server, tmp_path))
    results = [await answer(app, given(f"wrong {number}", "no-key-of-anybody")) for number in range(4)]
    assert {result["status"] for result in results} == {"failed"}
    assert "no-key-of-anybody" not in str(results)
    assert "not called for another" in results[-1]["error"]
    assert (await answer(app, given("2", ANNA)))["result"] == "contacts of anna"


async def test_values_are_in_no_checkpoint_event_log_or_file(
    server: KeyedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.echoes = True
    app, events = supervisor(catalog(server, tmp_path)), list[Any]()
    modes: Any = ["values", "updates", "custom", "checkpoints", "tasks", "debug"]
    async for event in app.astream({"messages": ASK}, given("1", ANNA), stream_mode=modes, subgraphs=True):
        events.append(event)
    state = await app.aget_state(run_of("1"), subgraphs=True)
    assert state.values["results"]["1"]["result"] == "contacts of anna, who has ***"
    saver = app.checkpointer
    kept = f"{state}{[*saver.list(None)]}{dict(saver.storage)}{dict(saver.writes)}{dict(saver.blobs)}"
    # LangGraph's own stream of checkpoints repeats the configuration that the caller gave.
    ours = [event for event in events if event[1] not in ("checkpoints", "debug")]
    on_disk = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert ANNA in server.heard
    assert ANNA not in kept
    assert ANNA not in str(ours)
    assert ANNA not in caplog.text
    assert ANNA.encode() not in on_disk


def test_consent_shows_the_name_of_the_value(server: KeyedServer, tmp_path: Path) -> None:
    loaded = catalog(server, tmp_path)
    config: Any = loaded.connections["crm"]
    (start,) = starts_of({"crm": config})
    assert f"with {HEADER} from ${{user:crm_key}}" in str(start)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "crm", "env": {"KEY": "${user:crm_key}"}},
        {"command": "crm", "args": ["${user:crm_key}"]},
        {"url": "https://crm.example.com/${user:crm_key}"},
        {"a2a": "https://crm.example.com", "headers": {HEADER: "${user:crm_key}"}},
    ],
    ids=["env", "args", "url", "a2a"],
)
def test_own_values_stand_in_headers_of_servers_only(entry: dict[str, Any], tmp_path: Path) -> None:
    read = read_configuration({"mcpServers": {"crm": entry}}, tmp_path / "mcp.json")
    (problem,) = read.problems
    assert not read.servers
    assert "can stand in the headers of an MCP server or an API only" in problem.message


def test_a_malformed_name_is_reported(tmp_path: Path) -> None:
    entry = {"url": "https://crm.example.com", "headers": {HEADER: "${user:crm key}"}}
    (problem,) = read_configuration({"mcpServers": {"crm": entry}}, tmp_path / "mcp.json").problems
    assert f"the header {HEADER!r} has a malformed ${{user:NAME}}" in problem.message


def test_users_of_a_gateway_have_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("crm_key", ANNA)
    server = ServerConfig(url="https://crm.example.com", headers={HEADER: "${user:crm_key}"}, transport="http")
    assert credentials_of_run("").of(server).values == {"crm_key": ANNA}
    with pytest.raises(SettingsError, match="'crm_key'"):
        credentials_of_run("bert").of(server)
    assert ANNA not in repr(credentials_of_run("").of(server))


async def test_an_api_gets_the_own_key_too(
    server: KeyedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {"get": {"operationId": "contacts", "responses": {"200": {"description": "my contacts"}}}}
    api = {"openapi": "3.1.0", "info": {"title": "crm", "version": "1"}, "paths": {"/api": parts}}
    (tmp_path / "api.json").write_text(json.dumps(api), encoding="utf-8")
    origin = server.url.removesuffix("/mcp")
    entry = {
        "openapi": "api.json",
        "url": origin,
        "headers": {HEADER: "${user:crm_key}"},
        "callsheet": {"trusted": True},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"crm": entry}}), encoding="utf-8")
    app = supervisor(load(tmp_path / "mcp.json", yes=True))
    for name, key in (("anna", ANNA), ("bert", BERT)):
        assert f"contacts of {name}" in str((await answer(app, given(name, key)))["result"])
