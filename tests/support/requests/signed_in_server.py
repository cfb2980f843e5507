"""An MCP server that asks for sign-in, with its own authorization server, on a free port of this machine."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2
from mcp import types
from mcp.server import Server
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse, RedirectResponse

from callsheet.graphs import Agent, Catalog, Loaded, Tool
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from callsheet.orchestrator.server.listener import listening
from web_thread import web_thread


class Authorization(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Agrees to everything, at once, in the name of ``person``; ``tells`` which scopes it gives."""

    def __init__(self) -> None:
        self.person, self.tells = "anna", True
        self.issued: list[str] = []
        self.refreshes = 0
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = secrets.token_hex(16)
        self._codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=self.person,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self._codes[authorization_code.code]
        code = authorization_code
        return self.issue(client.client_id, code.subject or "", code.resource, code.scopes)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        self.refreshes += 1
        del self.refresh[refresh_token.token]
        return self.issue(client.client_id, refresh_token.subject or "", None, refresh_token.scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access = {name: held for name, held in self.access.items() if held.subject != token.subject}
        self.refresh = {name: held for name, held in self.refresh.items() if held.subject != token.subject}

    def issue(self, client_id: str, subject: str, resource: str | None, scopes: Sequence[str] = ()) -> OAuthToken:
        access, refresh = f"access-canary-{secrets.token_hex(16)}", f"refresh-canary-{secrets.token_hex(16)}"
        self.issued += [access, refresh]
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=list(scopes), resource=resource, subject=subject
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=list(scopes), subject=subject)
        told = " ".join(scopes) if self.tells else None
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=told)


class SignedInServer:
    """The server.

    Attributes:
        url: Its address.
        authorization: Its authorization server.
        changes: Path of a JSON answer -> fields that are replaced in it.
        moved: Path -> the path to which its requests are redirected.
        lists: User -> names of the tools that are listed to that user.
        needs: Scopes that a call needs; a refusal names the first one that is missing.
        leaks: Whether a tool returns the access token.
        huge: Whether the metadata are much too long.
    """

    def __init__(self, origin: str) -> None:
        self.origin, self.url = origin, f"{origin}/mcp"
        self.authorization = Authorization()
        self.changes: dict[str, dict[str, Any]] = {}
        self.moved: dict[str, str] = {}
        self.lists: dict[str, tuple[str, ...]] = {}
        self.needs: list[str] = []
        self.leaks = self.huge = False
        server: Server[Any] = Server("tickets", on_list_tools=self._list, on_call_tool=self._call)
        auth = AuthSettings(
            issuer_url=AnyHttpUrl(origin),
            resource_server_url=AnyHttpUrl(self.url),
            client_registration_options=ClientRegistrationOptions(enabled=True),
            revocation_options=RevocationOptions(enabled=True),
            validate_token_resource=False,
        )
        verifier = ProviderTokenVerifier(self.authorization)
        self._app = server.streamable_http_app(
            auth=auth, auth_server_provider=self.authorization, token_verifier=verifier
        )

    async def _list(self, context: Any, request: Any) -> types.ListToolsResult:
        hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True)
        tool = types.Tool(
            name="whoami", description="Who is signed in.", input_schema={"type": "object"}, annotations=hints
        )
        token = get_access_token()
        names = self.lists.get((token.subject if token else None) or "", ("whoami",))
        return types.ListToolsResult(tools=[tool.model_copy(update={"name": name}) for name in names])

    async def _call(self, context: Any, request: Any) -> types.CallToolResult:
        token = get_access_token()
        who = token.subject if token and token.subject else "nobody"
        if self.leaks and token:
            who = f"{who} with {token.token}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=who)])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] in self.moved:
            await RedirectResponse(self.moved[scope["path"]], 307)(scope, receive, send)
            return
        if self.needs and scope["type"] == "http" and scope["path"] == "/mcp":
            receive = await self._scoped(scope, receive, send)
            if receive is None:
                return
        if self.huge and scope["type"] == "http" and "well-known" in scope["path"]:
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]}
            )
            for more in (*[True] * 100, False):
                await send({"type": "http.response.body", "body": b" " * 65_536, "more_body": more})
            return
        if scope["type"] != "http" or scope["path"] not in self.changes:
            await self._app(scope, receive, send)
            return
        body = b""

        async def hold(message: Any) -> None:
            nonlocal body
            body += message.get("body", b"")

        await self._app(scope, receive, hold)
        await JSONResponse(json.loads(body) | self.changes[scope["path"]])(scope, receive, send)

    async def _scoped(self, scope: Any, receive: Any, send: Any) -> Any:
        """Refuses a call whose token lacks scopes; else the request, to be read again."""
        message = await receive()
        token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        known = self.authorization.access.get(token)
        missing = [needed for needed in self.needs if known and needed not in known.scopes]
        if not missing or b"tools/call" not in message.get("body", b""):
            messages = [message]

            async def again() -> Any:
                return messages.pop() if messages else await receive()

            return again
        asked = f'Bearer error="insufficient_scope", scope="{missing[0]}"'
        await JSONResponse({}, 403, {"www-authenticate": asked})(scope, receive, send)
        return None


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The address of an app on a free port of this machine."""
    with listening(0) as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with web_thread(app, listener):
            yield origin


@contextmanager
def signed_in_server() -> Iterator[SignedInServer]:
    """A server that asks for sign-in."""
    with listening(0) as listener:
        app = SignedInServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with web_thread(app, listener):
            yield app


def tickets_of(server: SignedInServer) -> Loaded:
    """A catalog of the server, which is trusted."""
    hints = {"readOnlyHint": True, "idempotentHint": True}
    tool = Tool(agent="tickets", name="whoami", description="Tell who is signed in.", annotations=hints)
    config = ServerConfig(url=server.url, transport="http", callsheet=ServerOptions(trusted=True))
    return Loaded(Catalog(agents=(Agent(id="tickets", tools=(tool,)),)), connections={"tickets": config})


async def browse(page: str) -> None:
    """A browser whose user agrees."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        (await browser.get(page)).raise_for_status()
