"""Signing in to a server with a real authorization server, and calling it with the stored tokens."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from pathlib import Path

import pytest

from callsheet.agents import SessionPool, ToolRegistry
from callsheet.agents.calls.outcome import Outcome
from callsheet.agents.servers.oauth.addresses import check_safe
from callsheet.agents.servers.oauth.sign_in import PendingSignIn, await_answer, browser_sign_in, pending_sign_in
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens, Tokens, encrypted
from callsheet.graphs import Agent, Catalog, Loaded, SettingsError, Tool, User
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from signed_in_server import SignedInServer, browse, signed_in_server

METADATA = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"


async def signed_in(server: SignedInServer, user: str = "") -> StoredTokens:
    server.authorization.person = user or "anna"
    stored = StoredTokens(server.url, user)
    stored.write(await browser_sign_in(server.url, browse, user=user))
    return stored


def entry(server: SignedInServer) -> ServerConfig:
    return ServerConfig(url=server.url, transport="http")


async def who(pool: SessionPool, server: SignedInServer, run: str = "run") -> Outcome:
    return await pool.call(run, "tickets", entry(server), "whoami", {})


def told(stored: StoredTokens) -> Tokens:
    tokens = stored.read()
    assert tokens is not None
    return tokens


async def test_without_a_sign_in_the_error_says_how_and_nothing_is_called(
    server: SignedInServer, pool: SessionPool
) -> None:
    outcome = await who(pool, server)
    listing = await pool.list_tools(entry(server))
    assert (outcome.kind, outcome.effect) == ("sign_in", "none")
    assert f"run `callsheet sign-in {server.url}`" in outcome.error
    assert listing.kind == "sign_in"


async def test_what_a_server_lists_to_one_user_is_not_for_all(server: SignedInServer) -> None:
    await signed_in(server, "bert")
    await signed_in(server, "carla")
    server.lists = {"anna": ("whoami", "other"), "bert": ("whoami", "other"), "carla": ("whoami",)}
    loaded = Loaded(Catalog(agents=(_agent("whoami", "other"),)), connections={"tickets": entry(server)})
    registry = ToolRegistry.from_catalog(loaded)
    outcomes = {}
    for user in ("carla", "bert"):
        for name in ("whoami", "other"):
            tools = registry.bind([f"tickets/{name}"], user, user=User(user)).values()
            outcomes[user, name] = [(await tool.ainvoke({})) for tool in tools]
    registry.close()
    assert outcomes["bert", "other"] == ["bert"]
    assert outcomes["carla", "whoami"] == ["carla"]
    assert sorted(registry.catalog.tools) == ["tickets/other", "tickets/whoami"]


def _agent(*names: str) -> Agent:
    return Agent(id="tickets", tools=tuple(Tool(agent="tickets", name=name) for name in names))


async def test_an_expired_token_is_refreshed_once_by_all_who_use_it(server: SignedInServer) -> None:
    stored = await signed_in(server)
    old = told(stored)
    stored.write(old.model_copy(update={"expires": time.time() - 1}))
    pools = [SessionPool() for _ in range(4)]
    outcomes = await asyncio.gather(*(who(pool, server) for pool in pools))
    for pool in pools:
        pool.close()
    assert [outcome.text for outcome in outcomes] == ["anna"] * 4
    assert server.authorization.refreshes == 1
    assert told(stored).tokens.refresh_token != old.tokens.refresh_token


@pytest.mark.parametrize(
    ("path", "change", "why"),
    [
        (METADATA, {"issuer": "https://evil.example/"}, "issuer"),
        (RESOURCE, {"resource": "https://evil.example/mcp"}, "does not match"),
        (METADATA, {"token_endpoint": "http://tokens.example/token"}, "is not https"),
        (METADATA, {"registration_endpoint": "http://register.example/"}, "is not https"),
        (RESOURCE, {"authorization_servers": ["http://evil.example/"]}, "is not https"),
        (METADATA, {"authorization_endpoint": "https://bank.example@evil.example/page"}, "contains a user name"),
        (METADATA, {"authorization_endpoint": "http://login.example/page"}, "is not https"),
        (
            METADATA,
            {"registration_endpoint": None},
            "does not register clients: name a registered client with --client-id",
        ),
        (METADATA, {"token_endpoint": 1}, "names no authorization server, or that one publishes no metadata"),
        (METADATA, {"code_challenge_methods_supported": None}, "does not announce PKCE"),
        (METADATA, {"code_challenge_methods_supported": ["plain"]}, "does not announce PKCE"),
        (METADATA, {"code_challenge_methods_supported": []}, "does not announce PKCE"),
    ],
    ids=[
        *("issuer", "resource", "token endpoint", "registration", "authorization server", "user"),
        *("page", "no registration", "no metadata", "no PKCE", "plain PKCE", "empty PKCE"),
    ],
)
async def test_hostile_metadata_end_the_flow(
    server: SignedInServer, path: str, change: dict[str, object], why: str
) -> None:
    server.changes[path] = change
    with pytest.raises(SignInError, match=why):
        await browser_sign_in(server.url, browse)
    assert server.authorization.issued == []


async def test_a_client_of_before_is_sent_to_no_page_where_pkce_is_not_announced(server: SignedInServer) -> None:
    client = told(await signed_in(server)).client
    server.changes[METADATA] = {"code_challenge_methods_supported": None}
    opened: list[str] = []

    async def open_page(page: str) -> None:
        opened.append(page)

    with pytest.raises(SignInError, match="does not announce PKCE"):
        await browser_sign_in(server.url, open_page, client=client)
    assert opened == []


@pytest.mark.parametrize("path", ["/register", "/token"])
async def test_clients_and_codes_follow_no_redirect(server: SignedInServer, path: str) -> None:
    server.moved[path] = f"{server.origin}/elsewhere"
    with pytest.raises(SignInError, match=r"redirects to .*/elsewhere, which its metadata do not name"):
        await browser_sign_in(server.url, browse)
    assert server.authorization.issued == []


async def test_an_answer_that_is_no_token_is_not_quoted(server: SignedInServer) -> None:
    server.changes["/token"] = {"access_token": None}
    with pytest.raises(SignInError, match="Invalid token response") as refused:
        await browser_sign_in(server.url, browse)
    assert "canary" not in f"{refused.value}{refused.value.__cause__}"
    assert StoredTokens(server.url).read() is None


async def test_metadata_that_are_much_too_long_end_the_flow(server: SignedInServer) -> None:
    server.huge = True
    with pytest.raises(SignInError, match=r"1,000,000 bytes"):
        await browser_sign_in(server.url, browse, seconds=30)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.2", "127.1", "2130706433", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]"),
        *("localhost.", "LOCALHOST", "app.localhost", "169.254.169.254", "[fe80::1]"),
    ],
)
def test_a_server_elsewhere_does_not_lead_to_this_machine(host: str) -> None:
    for scheme in ("http", "https"):
        with pytest.raises(ValueError, match="leads to an address of this machine"):
            check_safe("mcp.example.com", f"{scheme}://{host}:8000/admin")
    check_safe("127.0.0.1", f"https://{host}:8000/admin")


def test_unencrypted_requests_are_for_loopback_addresses_only() -> None:
    check_safe("127.0.0.1", "http://127.0.0.1:8000/admin")
    check_safe("mcp.example.com", "https://login.example.com/authorize")
    for address in ("http://169.254.169.254/", "http://0.0.0.0/", "http://login.example.com/"):
        with pytest.raises(ValueError, match="is not https"):
            check_safe("127.0.0.1", address)


async def test_a_person_who_does_not_come_is_not_waited_for_without_end(server: SignedInServer) -> None:
    async def nobody(page: str) -> None:
        """The page is never opened."""

    with pytest.raises(SignInError, match=r"nobody signed in to .* within 0.5 s"):
        await browser_sign_in(server.url, nobody, seconds=0.5)


async def test_tokens_of_one_address_are_not_sent_to_another(server: SignedInServer, pool: SessionPool) -> None:
    await signed_in(server)
    with signed_in_server() as other:
        outcome = await who(pool, other)
    assert outcome.kind == "sign_in"


async def test_stored_tokens_are_encrypted(
    server: SignedInServer, pool: SessionPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stored = await signed_in(server)
    stored.write(told(stored).model_copy(update={"expires": 1.0}))
    assert (await who(pool, server)).text == "anna"
    server.authorization.access.clear()
    server.authorization.refresh.clear()
    outcome = await who(pool, server)
    on_disk = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert len(server.authorization.issued) == 4
    for token in server.authorization.issued:
        assert token.encode() not in on_disk
        assert token not in caplog.text
        assert token not in f"{outcome}"


async def test_another_key_does_not_decrypt_the_tokens(server: SignedInServer, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = await signed_in(server)
    monkeypatch.setenv("CALLSHEET_KEY", "x" * 32)
    with pytest.raises(SettingsError, match="encrypted with another key"):
        stored.read()
    monkeypatch.setenv("CALLSHEET_KEY", "short")
    with pytest.raises(SettingsError, match="needs at least 32"):
        stored.read()


def test_with_another_key_a_sign_in_can_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_KEY", "x" * 32)
    await_answer("before", PendingSignIn(user="anna", expires=time.time() + 60))
    monkeypatch.setenv("CALLSHEET_KEY", "y" * 32)
    assert pending_sign_in("before") is None
    await_answer("after", PendingSignIn(user="anna", expires=time.time() + 60))
    assert pending_sign_in("after") is not None


def test_the_missing_extra_for_encryption_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    with pytest.raises(SettingsError, match=r"needs the extra sign-in.*pip install '\.\[sign-in\]'"):
        encrypted(b"")


async def test_a_damaged_file_is_an_error_that_says_what_to_do(server: SignedInServer, tmp_path: Path) -> None:
    stored = await signed_in(server)
    (file,) = (tmp_path / "home").rglob("sign-ins/*")
    file.write_bytes(encrypted(b'{"server": "half'))
    with pytest.raises(SettingsError, match="sign in again"):
        stored.read()
