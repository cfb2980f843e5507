"""A server that asks for more scopes than a token has: they are asked for, with those of before, once a call."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents import SessionPool
from callsheet.agents.servers.oauth.browser_sign_in import browser_sign_in
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens
from callsheet.graphs import Agent, Catalog, Loaded, Tool
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from scripted_model import ScriptedModel, planned
from signed_in_server import SignedInServer, browse

WHO = "Whoami"
THREAD: Any = {"configurable": {"thread_id": "1"}}


async def called(pool: SessionPool, server: SignedInServer) -> Any:
    return await pool.call("run", "tickets", ServerConfig(url=server.url, transport="http"), "whoami", {})


def scopes(server: SignedInServer) -> set[str]:
    """Those of the stored access token, as the authorization server knows them."""
    tokens = StoredTokens(server.url).read()
    assert tokens is not None
    return {*server.authorization.access[tokens.tokens.access_token].scopes}


def app_of(server: SignedInServer) -> Any:
    hints = {"readOnlyHint": True, "idempotentHint": True}
    tool = Tool(agent="tickets", name="whoami", description="Tell who is signed in.", annotations=hints)
    config = ServerConfig(url=server.url, transport="http", callsheet=ServerOptions(trusted=True))
    loaded = Loaded(Catalog(agents=(Agent(id="tickets", tools=(tool,)),)), connections={"tickets": config})
    planner = ScriptedModel(replies=[planned(("1", WHO, []))])
    workflow = create_supervisor(loaded, planner_model=planner, settings=Settings())
    return workflow.compile(checkpointer=InMemorySaver())


async def signed_in(app: Any, question: Any) -> Any:
    await browse(question.value["url"])
    return await app.ainvoke(Command(resume={question.id: {"type": "signed_in"}}), THREAD)


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


async def test_a_run_asks_for_the_missing_scopes_and_goes_on(server: SignedInServer) -> None:
    await browser_sign_in(server.url, browse, scope="read")
    server.needs, app = ["write"], app_of(server)
    state = await app.ainvoke({"messages": WHO}, THREAD)
    (question,) = state["__interrupt__"]
    assert question.value["scopes"] == ["read", "write"]
    assert httpx2.URL(question.value["url"]).params["scope"] == "read write"
    # Whoever replies without a sign-in is asked again, at the same address.
    state = await app.ainvoke(Command(resume={question.id: {"type": "signed_in"}}), THREAD)
    (again,) = state["__interrupt__"]
    assert again.value["url"] == question.value["url"]
    state = await signed_in(app, again)
    assert state["results"]["1"]["result"] == "anna"
    assert scopes(server) == {"read", "write"}


async def test_a_first_sign_in_does_not_count_as_one_for_more_scopes(server: SignedInServer) -> None:
    server.needs, app = ["write"], app_of(server)
    state = await app.ainvoke({"messages": WHO}, THREAD)
    (question,) = state["__interrupt__"]
    assert "scopes" not in question.value
    (more,) = (await signed_in(app, question))["__interrupt__"]
    assert more.value["scopes"] == ["write"]
    state = await signed_in(app, more)
    assert state["results"]["1"]["result"] == "anna"


async def test_a_server_that_asks_for_ever_more_is_stopped(server: SignedInServer) -> None:
    await browser_sign_in(server.url, browse, scope="read")
    server.needs, app = ["write", "admin", "root"], app_of(server)
    state = await app.ainvoke({"messages": WHO}, THREAD)
    while state["results"].get("1") is None:
        (question,) = state["__interrupt__"]
        assert question.value["scopes"] == ["read", "write"]
        state = await signed_in(app, question)
    result = state["results"]["1"]
    assert result["status"] == "failed"
    assert "(admin)" in result["error"]
    assert "got the scopes 'read write' in this call, and asks for more" in result["error"]
    assert len(server.authorization.issued) == 4  # two sign-ins


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
