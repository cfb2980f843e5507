"""A gateway over standard input and output, or over HTTP with users."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection
from ipaddress import ip_address
from typing import Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.context import ServerRequestContext
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AnyHttpUrl, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from callsheet.agents import ToolRegistry
from callsheet.agents.servers.oauth.addresses import serve_at
from callsheet.graphs import CallsheetError, SettingsError, shown
from callsheet.orchestrator.server import sign_in
from callsheet.orchestrator.server.gateway.bearer_tokens import user_of_token
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer, Identify
from callsheet.orchestrator.server.page_requests import RefusedError
from callsheet.orchestrator.server.request_guard import gate

PATH = "/mcp"


def one_client() -> Identify:
    """The one client of standard input and output, who is anonymous."""
    caller = Caller(uuid.uuid4().hex)
    return lambda context: caller


def http_client(context: ServerRequestContext[Any, Any]) -> Caller:
    """A client over HTTP, by its token and its session.

    Clients of the newer protocol have no session; their calls share one session per user with the servers behind.
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
    """A web app that serves the gateway over streamable HTTP, at ``/mcp``, and takes answers to sign-ins.

    Requests for foreign host names, from foreign pages, and without a valid token are refused.

    Args:
        served: The gateway.
        url: Its address, as clients know it.
        tokens: Knows who a bearer token stands for; without it, nobody is asked for one.
        issuer: The authorization server where clients get tokens, for its discovery (RFC 9728).
        hosts: Further host names; see ``request_guard.gate``.
        origins: Origins of web pages that may use it.
    """
    auth = None
    if tokens is not None:
        own, named = _address("--url", url), _address("--issuer", issuer) if issuer else None
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
    """The route by which a user begins to sign in to a server behind the gateway."""

    async def begin(request: Request) -> JSONResponse:
        token = get_access_token()
        if users and token is None:
            return JSONResponse({"error": "give your access token of this gateway"}, 401)
        try:
            return await sign_in.begin(registry, user_of_token(token), request)
        except RefusedError as error:
            return JSONResponse({"error": shown(str(error))}, error.status)
        except (CallsheetError, ValidationError) as error:
            return JSONResponse({"error": shown(str(error))}, 400)

    return Route(sign_in.BEGIN, begin, methods=["POST"])


def _address(option: str, text: str) -> AnyHttpUrl:
    try:
        return TypeAdapter(AnyHttpUrl).validate_python(text)
    except ValidationError as error:
        raise SettingsError(f"{option} must be an address with http:// or https://, not {text!r}") from error


def check_reach(host: str, tokens: TokenVerifier | None) -> None:
    """Checks that other machines cannot call tools without a token.

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
