"""Operations of an API that asks for OAuth: the same sign-in and tokens as for MCP servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from callsheet import ToolRegistry, load
from callsheet.agents.servers.oauth.sign_in import browser_sign_in
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens
from callsheet.graphs import User
from signed_in_server import SignedInServer, browse, served

WHO = "Whoami"
SPEC = {
    "openapi": "3.1.0",
    "info": {"title": "desk", "version": "1"},
    "paths": {
        "/whoami": {"get": {"operationId": "whoami", "summary": WHO, "responses": {"200": {"description": "who"}}}}
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


async def called(registry: ToolRegistry, user: str = "") -> Any:
    (bound,) = registry.bind(["desk/whoami"], f"run of {user}", user=User(user)).values()
    return await bound.ainvoke({"type": "tool_call", "name": bound.name, "args": {}, "id": "1"})


async def test_two_users_of_an_api_hold_two_tokens(api: Api, server: SignedInServer, tmp_path: Path) -> None:
    registry = ToolRegistry.from_catalog(loaded(api, tmp_path))
    for user in ("bert", "carla"):
        server.authorization.person = user
        await browser_sign_in(api.url, browse, user=user)
    answers = {user: await called(registry, user) for user in ("bert", "carla", "")}
    registry.close()
    assert [answers[user].artifact["structured"] for user in ("bert", "carla")] == [{"who": "bert"}, {"who": "carla"}]
    assert (answers[""].artifact["kind"], answers[""].artifact["effect"]) == ("sign_in", "none")
    assert f"run `callsheet sign-in {api.url}`" in answers[""].text


async def test_an_api_without_metadata_says_so(api: Api, server: SignedInServer) -> None:
    with pytest.raises(SignInError, match="names no authorization server"):
        await browser_sign_in(f"{api.url}/elsewhere", browse)
    assert StoredTokens(f"{api.url}/elsewhere").read() is None
