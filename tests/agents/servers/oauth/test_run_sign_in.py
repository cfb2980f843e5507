"""Calls that need a sign-in: a step fails with the ways to sign in and is repeated after it; more scopes; APIs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from starlette.responses import JSONResponse, Response

from callsheet import Settings, ToolRegistry, create_supervisor, load
from callsheet.agents import SessionPool
from callsheet.agents.servers.oauth.sign_in import browser_sign_in
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens
from callsheet.graphs import User
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.orchestrator.run.threads import take_up
from scripted_model import ScriptedModel, calls, ended, planned
from signed_in_server import SignedInServer, browse, served, tickets_of

WHO = "Whoami"
ADDRESS = "https://calls.example.com/callsheet/sign-in?agent=tickets"


def supervisor(server: SignedInServer, *, says: AIMessage | None = None) -> Any:
    """A supervisor whose worker makes the call, and then says this, or what came of the call."""

    def worker(messages: list[BaseMessage]) -> AIMessage:
        answered = isinstance(messages[-1], ToolMessage)
        return (says or ended(messages[-1])) if answered else calls("tickets_whoami")

    model, planner = ScriptedModel(replies=[worker]), ScriptedModel(replies=[planned(("1", WHO, []))])
    workflow = create_supervisor(tickets_of(server), model=model, planner_model=planner, settings=Settings())
    return workflow.compile(checkpointer=InMemorySaver())


def thread(user: str = "") -> Any:
    known = {"langgraph_auth_user": {"identity": user}} if user else {}
    return {"configurable": {"thread_id": user or "1", **known}}


async def test_the_step_is_repeated_after_the_sign_in_and_again_when_that_is_lost(server: SignedInServer) -> None:
    app = supervisor(server)
    state = await app.ainvoke({"messages": WHO}, thread())
    for _ in range(2):
        assert state["results"]["1"]["status"] == "failed"
        await browser_sign_in(server.url, browse)
        assert await take_up(app, thread())
        state = await app.ainvoke(None, thread())
        assert state["results"]["1"]["result"] == "anna"
        server.authorization.access.clear()
        server.authorization.refresh.clear()
        state = await app.ainvoke({"messages": WHO}, thread())
    assert len(server.authorization.issued) == 4


@pytest.mark.parametrize(
    "says",
    [None, AIMessage("All is well."), calls("finish", status="cannot", answer="It did not work.")],
    ids=["the error", "done", "cannot"],
)
@pytest.mark.parametrize("with_page", [True, False], ids=["server", "program"])
async def test_whatever_the_model_says_the_error_tells_how_to_sign_in(
    server: SignedInServer, monkeypatch: pytest.MonkeyPatch, says: AIMessage | None, *, with_page: bool
) -> None:
    if with_page:
        monkeypatch.setenv("CALLSHEET_URL", "https://calls.example.com")
    state = await supervisor(server, says=says).ainvoke({"messages": WHO}, thread("bert"))
    result = state["results"]["1"]
    assert (result["status"], len(result["calls"])) == ("failed", 1)
    assert f"run `callsheet sign-in {server.url} --user bert`" in result["error"]
    assert (ADDRESS in result["error"]) == with_page
    assert [(call["kind"], call["effect"]) for call in result["calls"]] == [("sign_in", "none")]
    assert server.authorization.issued == []


async def test_users_hold_tokens_of_their_own(server: SignedInServer) -> None:
    app = supervisor(server)
    for user in ("bert", "carla"):
        server.authorization.person = user
        await browser_sign_in(server.url, browse, user=user)
    results = {user: (await app.ainvoke({"messages": WHO}, thread(user)))["results"]["1"] for user in ("bert", "carla")}
    assert {user: result["result"] for user, result in results.items()} == {"bert": "bert", "carla": "carla"}
    assert (await app.ainvoke({"messages": WHO}, thread()))["results"]["1"]["status"] == "failed"


async def test_tokens_are_in_no_checkpoint_event_log_or_file(
    server: SignedInServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.leaks = True
    app, events = supervisor(server), list[Any]()
    await browser_sign_in(server.url, browse)
    modes: Any = ["values", "updates", "custom", "checkpoints", "tasks", "debug"]
    async for event in app.astream({"messages": WHO}, thread(), stream_mode=modes, subgraphs=True):
        events.append(event)
    state = await app.aget_state(thread(), subgraphs=True)
    assert state.values["results"]["1"]["result"].startswith("anna with ")
    saver = app.checkpointer
    kept = f"{events}{state}{[*saver.list(None)]}{dict(saver.storage)}{dict(saver.writes)}{dict(saver.blobs)}"
    on_disk = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert len(server.authorization.issued) == 2
    for secret in server.authorization.issued:
        assert secret not in kept
        assert secret not in caplog.text
        assert secret.encode() not in on_disk


async def called(pool: SessionPool, server: SignedInServer) -> Any:
    return await pool.call("run", "tickets", ServerConfig(url=server.url, transport="http"), "whoami", {})


def scopes(server: SignedInServer) -> set[str]:
    """Those of the stored access token, as the authorization server knows them."""
    tokens = StoredTokens(server.url).read()
    assert tokens is not None
    return {*server.authorization.access[tokens.tokens.access_token].scopes}


@pytest.mark.parametrize("tells", [True, False], ids=["told", "not told"])
async def test_the_next_sign_in_asks_for_the_missing_scopes_and_those_of_before(
    server: SignedInServer, pool: SessionPool, *, tells: bool
) -> None:
    server.authorization.tells = tells
    await browser_sign_in(server.url, browse, scope="read")
    assert scopes(server) == {"read"}
    server.needs = ["write"]
    refused = await called(pool, server)
    assert (refused.kind, refused.effect) == ("sign_in", "none")
    assert f"more rights than you have given (write): run `callsheet sign-in {server.url}`" in refused.error
    await browser_sign_in(server.url, browse)
    assert scopes(server) == {"read", "write"}
    assert (await called(pool, server)).text == "anna"


async def test_what_two_calls_miss_is_asked_for_at_once_and_survives_a_refresh(
    server: SignedInServer, pool: SessionPool
) -> None:
    await browser_sign_in(server.url, browse, scope="read")
    server.needs = ["write"]
    await called(pool, server)
    server.needs = ["admin"]
    server.authorization.access.clear()  # the next call refreshes the token
    await called(pool, server)
    assert server.authorization.refreshes == 1
    await browser_sign_in(server.url, browse)
    assert scopes(server) == {"read", "write", "admin"}


@pytest.mark.parametrize("asked", ["wr\\\\ite", "a  b", "é", "x" * 1001], ids=["backslash", "spaces", "é", "long"])
async def test_malformed_scopes_are_not_asked_for(server: SignedInServer, pool: SessionPool, asked: str) -> None:
    await browser_sign_in(server.url, browse, scope="read")
    server.needs = [asked]
    refused = await called(pool, server)
    assert refused.kind == "sign_in"
    assert "malformed, or longer than 1,000 characters" in refused.error
    assert asked not in refused.error
    await browser_sign_in(server.url, browse)
    assert scopes(server) == set()


async def test_malformed_scopes_of_a_person_are_refused(server: SignedInServer) -> None:
    with pytest.raises(SignInError, match="malformed"):
        await browser_sign_in(server.url, browse, scope='read" evil="')
    assert server.authorization.issued == []


SPEC = {
    "openapi": "3.1.0",
    "info": {"title": "desk", "version": "1"},
    "paths": {
        "/whoami": {"get": {"operationId": "whoami", "summary": "Whoami", "responses": {"200": {"description": "who"}}}}
    },
}


class Api:
    """An API whose tokens another server issues; at its own address there is nothing."""

    def __init__(self, tickets: SignedInServer) -> None:
        self._tickets, self.url = tickets, ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._answer(scope["path"], dict(scope["headers"]))(scope, receive, send)

    def _answer(self, path: str, headers: dict[bytes, bytes]) -> Response:
        metadata = "/.well-known/oauth-protected-resource/v1"
        if path == metadata:
            return JSONResponse({"resource": self.url, "authorization_servers": [f"{self._tickets.origin}/"]})
        if path != "/v1/whoami":
            return JSONResponse({}, 404)
        token = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        if (known := self._tickets.authorization.access.get(token)) is None:
            origin = self.url.removesuffix("/v1")
            return JSONResponse({}, 401, {"www-authenticate": f'Bearer resource_metadata="{origin}{metadata}"'})
        return JSONResponse({"who": known.subject})


@pytest.fixture
def api(server: SignedInServer) -> Iterator[Api]:
    app = Api(server)
    with served(app) as origin:
        app.url = f"{origin}/v1"
        yield app


def loaded(api: Api, folder: Path) -> Any:
    (folder / "desk.json").write_text(json.dumps(SPEC))
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"desk": {"openapi": "desk.json", "url": api.url}}}))
    return load(folder / "mcp.json", yes=True)


async def asked(registry: ToolRegistry, user: str = "") -> Any:
    (bound,) = registry.bind(["desk/whoami"], f"run of {user}", user=User(user)).values()
    return await bound.ainvoke({"type": "tool_call", "name": bound.name, "args": {}, "id": "1"})


async def test_two_users_of_an_api_hold_two_tokens(api: Api, server: SignedInServer, tmp_path: Path) -> None:
    registry = ToolRegistry.from_catalog(loaded(api, tmp_path))
    for user in ("bert", "carla"):
        server.authorization.person = user
        await browser_sign_in(api.url, browse, user=user)
    answers = {user: await asked(registry, user) for user in ("bert", "carla", "")}
    registry.close()
    assert [answers[user].artifact["structured"] for user in ("bert", "carla")] == [{"who": "bert"}, {"who": "carla"}]
    assert (answers[""].artifact["kind"], answers[""].artifact["effect"]) == ("sign_in", "none")
    assert f"run `callsheet sign-in {api.url}`" in answers[""].text


async def test_an_api_without_metadata_says_so(api: Api, server: SignedInServer) -> None:
    with pytest.raises(SignInError, match="names no authorization server"):
        await browser_sign_in(f"{api.url}/elsewhere", browse)
    assert StoredTokens(f"{api.url}/elsewhere").read() is None
