"""Serves a gateway over standard input and output, or over HTTP to users with tokens."""

from __future__ import annotations

import hashlib
import json
import logging
import time
import uuid
from collections.abc import Collection
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from anyio import CapacityLimiter, to_thread
from langchain_core.runnables import RunnableConfig
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.context import ServerRequestContext
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AnyHttpUrl, AwareDatetime, BaseModel, Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from callsheet.agents import ApprovalPolicy, ToolRegistry
from callsheet.agents.servers.oauth.addresses import serve_at
from callsheet.graphs import CallsheetError, Loaded, SettingsError, User, shown
from callsheet.graphs.errors import needs_extra
from callsheet.orchestrator.apps.ask_graph import create_ask_app
from callsheet.orchestrator.run.run_context import user_of
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.server import sign_in
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller
from callsheet.orchestrator.server.gateway.mcp_gateway import Ask, GatewayServer, Identify
from callsheet.orchestrator.server.page_requests import RefusedError
from callsheet.orchestrator.server.request_guard import gate
from callsheet.orchestrator.supervisor import create_supervisor
from callsheet.retrievers import AgentGraphRetriever

if TYPE_CHECKING:
    import jwt

PATH = "/mcp"
_LOG = logging.getLogger("callsheet")
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_METADATA = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
_SECONDS = 10.0


def one_client() -> Identify:
    """Returns the one client of standard input and output, who is anonymous."""
    caller = Caller(uuid.uuid4().hex)
    return lambda context: caller


def http_client(context: ServerRequestContext[Any, Any]) -> Caller:
    """Returns the client of a request over HTTP, by its token and its session.

    Clients of the newer protocol have no session; the calls of one user then share their sessions with the catalog's
    servers.
    """
    user = user_of_token(get_access_token())
    has_session = context.request and context.protocol_version not in MODERN_PROTOCOL_VERSIONS
    session = context.request.headers.get("mcp-session-id", "") if context.request and has_session else ""
    whole = "\0".join((user.id, *sorted(user.groups), session))
    return Caller(hashlib.sha256(whole.encode()).hexdigest(), user)


def http_app(
    served: GatewayServer,
    *,
    url: str,
    tokens: TokenVerifier | None = None,
    issuer: str | None = None,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
) -> Starlette:
    """Returns a web app that serves the gateway over streamable HTTP at ``/mcp``, and the callback of sign-ins.

    It refuses requests for foreign host names, from foreign pages, and without a valid token; without ``tokens``, no
    token is required. ``url`` is the address that clients know, ``issuer`` the authorization server where they get
    tokens (RFC 9728); ``hosts`` and ``origins`` are as in ``request_guard.gate``.
    """
    auth = None
    if tokens is not None:
        own = _address("--url", url)
        named = _address("--issuer", issuer) if issuer else None
        resource = own if named else None
        auth = AuthSettings(issuer_url=named or own, resource_server_url=resource, validate_token_resource=False)
    serve_at(url.removesuffix(PATH))
    app = served.server.streamable_http_app(
        streamable_http_path=PATH,
        auth=auth,
        token_verifier=tokens,
        # Hosts and origins are checked by the guard that all servers of Callsheet have.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.router.routes += [*sign_in.public_routes(), _sign_in_route(served.registry, users=tokens is not None)]
    for middleware in reversed(gate(hosts, origins)):
        app.add_middleware(middleware.cls, *middleware.args, **middleware.kwargs)
    return app


def _sign_in_route(registry: ToolRegistry, *, users: bool) -> Route:
    async def begin(request: Request) -> JSONResponse:
        token = get_access_token()
        if users and token is None:
            return JSONResponse({"error": "give your access token of this gateway"}, 401)
        try:
            return await sign_in.begin(registry, user_of_token(token), request)
        except (CallsheetError, ValidationError) as error:
            status = error.status if isinstance(error, RefusedError) else 400
            return JSONResponse({"error": shown(str(error))}, status)

    return Route(sign_in.BEGIN, begin, methods=["POST"])


def _address(option: str, text: str) -> AnyHttpUrl:
    try:
        return TypeAdapter(AnyHttpUrl).validate_python(text)
    except ValidationError as error:
        raise SettingsError(f"{option} must be an address with http:// or https://, not {text!r}") from error


def check_reach(host: str, tokens: TokenVerifier | None) -> None:
    """Raises an error if other machines could call tools without a token.

    Raises:
        SettingsError: The address is not a loopback address, and no tokens are asked for.
    """
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local and tokens is None:
        raise SettingsError(
            f"at {host}, everybody who reaches this machine could call the tools: say who may with --tokens FILE or "
            "--issuer URL, or bind to 127.0.0.1"
        )


class _Entry(BaseModel, frozen=True, extra="forbid"):
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    user: str = Field(min_length=1)
    groups: tuple[str, ...] = ()
    expires: AwareDatetime | None = None


class _Entries(BaseModel, frozen=True, extra="forbid"):
    tokens: tuple[_Entry, ...]


class TokenFile:
    """Verifies tokens by their SHA-256 in a JSON file, which is read again when it changes.

    ``{"tokens": [{"sha256": "...", "user": "anna", "groups": ["sales"], "expires": "2030-01-01T00:00:00Z"}]}``; the
    last two are optional. A token that was removed or has expired is refused from then on. If the file has become
    unreadable, all tokens are refused.

    Raises:
        SettingsError: The file cannot be read, or has another form.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stamp: tuple[int, int] | None = None
        self._users: dict[str, _Entry] = {}
        self._read()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Returns the user of a token; None for an unknown or expired one."""
        try:
            await to_thread.run_sync(self._read)
        except SettingsError:
            return None
        entry = self._users.get(hashlib.sha256(token.encode("utf-8", "replace")).hexdigest())
        if entry is None or (entry.expires and entry.expires <= datetime.now(UTC)):
            return None
        return AccessToken(
            token="", client_id=entry.user, scopes=[], subject=entry.user, claims={"groups": list(entry.groups)}
        )

    def _read(self) -> None:
        try:
            status = self._file.stat()
            if self._stamp == (stamp := (status.st_mtime_ns, status.st_size)):
                return
            entries = _Entries.model_validate_json(self._file.read_bytes())
        except OSError as error:
            raise SettingsError(f"the file of tokens {self._file} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            raise SettingsError(f"the file of tokens {self._file}: {where}: {first['msg']}") from error
        self._users = {entry.sha256: entry for entry in entries.tokens}
        self._stamp = stamp


class IssuedTokens:
    """Verifies signed tokens (JWT, RFC 9068) of an authorization server with its published keys.

    It checks the issuer (exactly as it names itself), the audience (the address of this gateway), the expiry and the
    signature. The user is the ``sub``; ``groups`` and the scopes are groups.

    Raises:
        SettingsError: The extra ``sign-in`` is not installed.
    """

    def __init__(self, issuer: str, audience: str) -> None:
        try:
            import cryptography  # noqa: F401
            import jwt  # noqa: F401
        except ImportError as error:
            raise SettingsError(f"--issuer {needs_extra('sign-in')}") from error
        self._issuer = issuer
        self._audience = audience
        self._keys: jwt.PyJWKClient | None = None
        self._limiter = CapacityLimiter(4)  # a slow server must not hold all threads of the gateway

    async def verify_token(self, token: str) -> AccessToken | None:
        """Returns the user of a token; None for a token that is invalid, expired, or meant for another server."""
        if token.count(".") != 2:
            return None
        return await to_thread.run_sync(self._verified, token, limiter=self._limiter)

    def _verified(self, token: str) -> AccessToken | None:
        import jwt

        try:
            self._keys = self._keys or jwt.PyJWKClient(self._keys_address(), timeout=_SECONDS)
            key = self._keys.get_signing_key_from_jwt(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(_ALGORITHMS),
                issuer=self._issuer,
                audience=self._audience,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWKClientConnectionError, httpx2.HTTPError, KeyError, ValueError) as error:
            _LOG.warning("no token can be checked: the keys of %s cannot be read: %s", self._issuer, error)
            return None
        except jwt.PyJWTError:
            return None
        scopes = claims.get("scope")
        return AccessToken(
            token="",
            client_id=str(claims.get("client_id") or claims["sub"]),
            scopes=scopes.split() if isinstance(scopes, str) else [],
            expires_at=int(claims["exp"]),
            subject=str(claims["sub"]),
            claims={"iss": self._issuer, "groups": claims.get("groups")},
        )

    def _keys_address(self) -> str:
        """Address of the keys, from the server's metadata (RFC 8414, OpenID Connect Discovery)."""
        for path in _METADATA:
            answer = httpx2.get(self._issuer.rstrip("/") + path, timeout=_SECONDS)
            if answer.is_success and isinstance(found := json.loads(answer.content), dict):
                if found.get("issuer") != self._issuer:
                    raise ValueError("the metadata of the authorization server name another issuer")
                return str(found["jwks_uri"])
        raise ValueError("the authorization server publishes no metadata")


def user_of_token(token: AccessToken | None) -> User:
    """Returns the user of a token; the anonymous user if there is no token, or if it has expired."""
    if token is None or (token.expires_at is not None and token.expires_at <= time.time()):
        return User()
    return user_of({"identity": token.subject, "groups": (token.claims or {}).get("groups")}, token.scopes)


def supervisor_tool(
    loaded: Loaded,
    retriever: AgentGraphRetriever,
    registry: ToolRegistry,
    model: str | None,
    approval: ApprovalPolicy,
) -> Ask:
    """Makes a function that answers each request by the supervisor; unless all is done, it adds the steps as JSON.

    A call that needs approval is not made, and the answer says so.
    """
    settings = Settings(model=model, approval=approval)
    supervisor = create_supervisor(loaded, retriever=retriever, registry=registry, settings=settings)
    app = create_ask_app(supervisor.compile()).compile(name="ask")

    async def ask(request: str, caller: Caller) -> str:
        user = {"identity": caller.user.id, "groups": sorted(caller.user.groups)} if caller.user.id else None
        config: RunnableConfig = {"configurable": {"langgraph_auth_user": user}} if user else {}
        answered = await app.ainvoke({"question": request}, config)
        left = [step for step in answered["steps"] if step["status"] != "done"]
        return "\n".join([answered["answer"], *([f"Not done: {json.dumps(left, ensure_ascii=False)}"] if left else [])])

    return ask
