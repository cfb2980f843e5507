"""The gateway over HTTP: users by token, policy, foreign pages."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import TokenVerifier

from callsheet.graphs import SettingsError, User
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer
from callsheet.orchestrator.server.gateway.serving import IssuedTokens, TokenFile, http_app, http_client, user_of_token
from local_gateway import APPROVED, LocalGateway, answering, logged
from signed_in_server import served

pytestmark = pytest.mark.server


def client(url: str, token: str = "", **more: Any) -> Client:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    http = httpx2.AsyncClient(headers=headers, timeout=60)
    return Client(streamable_http_client(f"{url}/mcp", http_client=http), **more)


def entry(token: str, user: str, **more: Any) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(token.encode()).hexdigest(), "user": user, **more}


def write(file: Path, *entries: dict[str, Any]) -> Path:
    file.write_text(json.dumps({"tokens": entries}))
    return file


@pytest.fixture
def seen(local: LocalGateway) -> list[Caller]:
    return []


def gateway(local: LocalGateway, seen: list[Caller], tokens: TokenVerifier | None = None) -> Any:
    def identify(context: Any) -> Caller:
        seen.append(http_client(context))
        return seen[-1]

    return http_app(GatewayServer(local.gateway, identify), url="http://127.0.0.1/mcp", tokens=tokens)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_each_user_has_sessions_of_their_own(
    local: LocalGateway, seen: list[Caller], tmp_path: Path, mode: str
) -> None:
    file = write(tmp_path / "tokens.json", entry("a", "anna", groups=["sales"]), entry("b", "bert"))
    with served(gateway(local, seen, TokenFile(file))) as url:
        for token in ("a", "b"):
            async with client(url, token, mode=mode) as one:
                arguments = {"tool": "works/measure", "arguments": {"name": "xyz"}}
                called = await one.call_tool("call_tool", arguments)
                assert called.structured_content == {"length": 3}
    assert {caller.user for caller in seen} == {User("anna", frozenset({"sales"})), User("bert")}
    assert len({caller.session for caller in seen}) == 2


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_approval_progress_and_cancellation_over_http(local: LocalGateway, seen: list[Caller], mode: str) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    with served(gateway(local, seen)) as url:
        async with client(url, mode=mode, elicitation_callback=answering(APPROVED)) as one:
            await one.call_tool("call_tool", {"tool": "works/write", "arguments": {"text": "hello"}})
            counting = {"tool": "works/count", "arguments": {"steps": 2}}
            await one.call_tool("call_tool", counting, progress_callback=hear)
            call = asyncio.create_task(one.call_tool("call_tool", {"tool": "works/sleep"}))
            await logged(local, ["wrote hello", "asleep"])
            call.cancel()
            await logged(local, ["wrote hello", "asleep", "called off"])
    assert heard == [1, 2]


async def test_a_user_with_many_sessions_ends_their_own_only(
    local: LocalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers = [Caller("early", User("anna")), *(Caller(f"bert {n}", User("bert")) for n in range(1_001))]
    ended, left = list[str](), iter(callers)
    context: Any = SimpleNamespace(session=SimpleNamespace(client_capabilities=None))

    async def close(session: str) -> None:
        ended.append(session)

    monkeypatch.setattr(local.gateway, "close", close)
    gateway = GatewayServer(local.gateway, lambda context: next(left))
    for _ in callers:
        await gateway._list(context, None)
    await asyncio.sleep(0)
    assert ended == ["bert 0", "bert 1"]


async def test_twenty_clients_call_at_once_over_http(local: LocalGateway, seen: list[Caller]) -> None:
    with served(gateway(local, seen)) as url:

        async def one(number: int) -> Any:
            async with client(url) as connected:
                arguments = {"tool": "works/measure", "arguments": {"name": "x" * number}}
                return (await connected.call_tool("call_tool", arguments)).structured_content

        assert await asyncio.gather(*map(one, range(20))) == [{"length": number} for number in range(20)]


@pytest.mark.parametrize("token", ["", "c", "b"])
def test_without_a_valid_token_nothing_is_served(
    local: LocalGateway, seen: list[Caller], tmp_path: Path, token: str
) -> None:
    file = write(tmp_path / "tokens.json", entry("a", "anna"), entry("b", "bert", expires="2020-01-01T00:00:00Z"))
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with served(gateway(local, seen, TokenFile(file))) as url:
        answer = httpx2.post(f"{url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
    assert answer.status_code == 401
    assert seen == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 400),
        ({"origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
    ],
)
def test_foreign_pages_are_refused(
    local: LocalGateway, seen: list[Caller], headers: dict[str, str], status: int
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with served(gateway(local, seen)) as url:
        answer = httpx2.post(
            f"{url}/mcp", content=json.dumps(body), headers={"content-type": "application/json"} | headers
        )
    assert answer.status_code == status
    assert seen == []


async def test_a_token_that_is_taken_out_is_refused_at_once(tmp_path: Path) -> None:
    file = write(tmp_path / "tokens.json", entry("a", "anna"), entry("b", "bert"))
    tokens = TokenFile(file)
    assert user_of_token(await tokens.verify_token("a")) == User("anna")
    write(file, entry("b", "bert"))
    assert await tokens.verify_token("a") is None
    file.write_text("{")
    assert await tokens.verify_token("b") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "the file: Invalid JSON"),
        ('{"tokens": [{"sha256": "abc", "user": "anna"}]}', "tokens.0.sha256: String should match"),
        ('{"tokens": [{"token": "secret-word", "user": "anna"}]}', "tokens.0.sha256: Field required"),
    ],
)
def test_a_file_of_another_form_is_refused_without_its_contents(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "tokens.json").write_text(text)
    with pytest.raises(SettingsError) as refused:
        TokenFile(tmp_path / "tokens.json")
    assert told in str(refused.value)
    assert "secret-word" not in str(refused.value)


KEY, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
GATEWAY = "https://gateway.example/mcp"


@pytest.fixture
def issuer() -> Iterator[str]:
    """An authorization server's metadata and keys."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def metadata(request: Request) -> JSONResponse:
        own = str(request.base_url).rstrip("/")
        return JSONResponse({"issuer": own, "jwks_uri": f"{own}/keys"})

    async def keys(request: Request) -> JSONResponse:
        own = json.loads(RSAAlgorithm.to_jwk(KEY.public_key()))
        return JSONResponse({"keys": [own | {"kid": "1", "use": "sig"}]})

    routes = [Route("/.well-known/oauth-authorization-server", metadata), Route("/keys", keys)]
    with served(Starlette(routes=routes)) as url:
        yield url


def token(issuer: str, *, key: Any = KEY, algorithm: str = "RS256", **changes: Any) -> str:
    claims = {"iss": issuer, "aud": GATEWAY, "sub": "anna", "exp": time.time() + 60, "groups": ["sales"], **changes}
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, key, algorithm, headers={"kid": "1"})


async def test_a_token_of_the_authorization_server_names_the_user(issuer: str) -> None:
    verified = await IssuedTokens(issuer, GATEWAY).verify_token(token(issuer, scope="read write"))
    assert user_of_token(verified) == User("anna", frozenset({"sales", "read", "write"}))


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://other.example/mcp"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"exp": None},
        {"sub": None},
        {"key": OTHER},
        {"key": "x" * 64, "algorithm": "HS256"},
    ],
    ids=["audience", "issuer", "expired", "no expiry", "no subject", "key", "algorithm"],
)
async def test_a_token_for_or_by_somebody_else_is_refused(issuer: str, changes: dict[str, Any]) -> None:
    assert await IssuedTokens(issuer, GATEWAY).verify_token(token(issuer, **changes)) is None


async def test_without_the_authorization_server_no_token_is_good() -> None:
    assert await IssuedTokens("http://127.0.0.1:9", GATEWAY).verify_token(token("http://127.0.0.1:9")) is None


def test_what_checks_signed_tokens_is_an_extra_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(SettingsError, match=r"--issuer needs the extra sign-in, .*'\.\[sign-in\]'"):
        IssuedTokens("https://issuer.example", GATEWAY)


async def test_clients_learn_where_to_sign_in(local: LocalGateway, seen: list[Caller], issuer: str) -> None:
    app = http_app(
        GatewayServer(local.gateway, http_client), url=GATEWAY, tokens=IssuedTokens(issuer, GATEWAY), issuer=issuer
    )
    with served(app) as url:
        refused = httpx2.post(f"{url}/mcp", json={})
        found = httpx2.get(f"{url}/.well-known/oauth-protected-resource/mcp").json()
    assert refused.status_code == 401
    assert "resource_metadata=" in refused.headers["www-authenticate"]
    assert found["resource"] == GATEWAY
    assert [one.rstrip("/") for one in found["authorization_servers"]] == [issuer]
