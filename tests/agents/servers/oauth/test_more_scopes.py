"""A server that asks for more scopes than a token has: the next sign-in asks for them, with those of before."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents import SessionPool
from callsheet.agents.servers.oauth.sign_in import browser_sign_in
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from signed_in_server import SignedInServer, browse


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
