"""The OAuth flow of a person in two halves, which may run in two processes: the page to open, and the answer to it.

The MCP SDK's client does the first half: discovery, registration, scopes and the address of the page.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, PKCEParameters
from mcp.client.auth.utils import validate_authorization_response_iss
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, BaseModel, ConfigDict, ValidationError

from callsheet.agents.safety.origins import of_this_machine
from callsheet.agents.servers.oauth.stored_tokens import SignInError, Tokens, check_scope, expiry, posted
from callsheet.agents.servers.transport.http import BoundedBody
from callsheet.agents.tools.tool_result import Fault
from callsheet.graphs.text.sanitizing import shown

# Its errors are raised as well; the traceback would show what a server says as it is.
logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())
logging.getLogger("mcp.client.auth").propagate = False

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "callsheet", "version": "0.1.0"},
    },
}
_HEADERS = {"accept": "application/json, text/event-stream", "accept-encoding": "identity"}
_TIMEOUT, _LARGEST = 30.0, 1_000_000


class Authorization(BaseModel):
    """A sign-in that has begun: what the answer of the authorization server is checked with and exchanged for tokens.

    Attributes:
        page: The authorization server's page, for the person to open.
        verifier: The secret of PKCE.
        resource: The resource for which tokens are issued (RFC 8707); None if the server names none.
        scope: The scopes that are asked for; None for those that the authorization server gives unasked.
    """

    model_config = ConfigDict(frozen=True)

    server: str
    user: str
    redirect: str
    state: str
    page: str
    verifier: str
    client: OAuthClientInformationFull
    metadata: OAuthMetadata
    resource: str | None
    scope: str | None = None


async def begin(
    server: str,
    redirect: str,
    state: str,
    *,
    user: str = "",
    client: OAuthClientInformationFull | None = None,
    scope: str | None = None,
) -> Authorization:
    """Finds the authorization server, registers a client and makes the address of the page, with PKCE.

    Args:
        server: Address of the server.
        redirect: Where the answer is to come.
        state: The parameter ``state``, which nobody can guess.
        user: Who is to sign in.
        client: A client that was registered before; None registers one.
        scope: Scopes to ask for; None: those that the server names.

    Raises:
        SignInError: The server asks for no sign-in, its metadata are not those of its own, the scopes are malformed,
            or a request failed.
    """
    if scope is not None:
        check_scope(scope)
    proof, held, pages = PKCEParameters.generate(), _Client(client), list[httpx2.URL]()
    own = {"state": state, "code_challenge": proof.code_challenge}

    async def opened(page: str) -> None:
        pages.append(httpx2.URL(page).copy_merge_params(own))

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(redirect)], client_name="Callsheet")
    auth = OAuthClientProvider(server, metadata, held, opened, _not_yet)
    hooks: Any = {"request": [partial(_check_request, auth)], "response": [partial(_prepare, server, scope)]}
    try:
        async with (
            httpx2.AsyncClient(auth=auth, timeout=_TIMEOUT, event_hooks=hooks) as http,
            http.stream("POST", server, json=_HELLO, headers=_HEADERS) as answer,
        ):
            raise SignInError(f"{server} asks for no sign-in (status {answer.status_code})")
    except _BegunError:
        found = _checked(server, auth.context.oauth_metadata)
    except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValidationError, ValueError, OSError, Fault) as error:
        raise SignInError(f"signing in to {server} failed: {_said(error)}") from error
    return Authorization(
        server=server,
        user=user,
        redirect=redirect,
        state=state,
        page=str(pages[0]),
        verifier=proof.code_verifier,
        client=held.known(),
        metadata=found,
        resource=pages[0].params.get("resource"),
        scope=pages[0].params.get("scope"),
    )


def redeem(begun: Authorization, answer: Mapping[str, str]) -> Tokens:
    """Exchanges the answer of the authorization server for tokens.

    Args:
        begun: The sign-in that is answered; its ``state`` has been compared.
        answer: The query of the redirect: ``code`` and ``iss``, or ``error``.

    Raises:
        SignInError: The person or the authorization server refused, the answer is another issuer's, or the exchange
            failed.
    """
    told = f"signing in to {begun.server} failed"
    if "error" in answer:
        why = " ".join(shown(f"{answer['error']} {answer.get('error_description', '')}", most=300).split())
        raise SignInError(f"{told}: the authorization server refused: {why}")
    try:
        validate_authorization_response_iss(answer.get("iss"), begun.metadata)
    except OAuthFlowError as error:
        raise SignInError(f"{told}: {shown(str(error), most=300)}") from error
    if not (code := answer.get("code")):
        raise SignInError(f"{told}: the authorization server gives no code")
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": begun.redirect,
        "code_verifier": begun.verifier,
        **({"resource": begun.resource} if begun.resource else {}),
    }
    issuer, endpoint = str(begun.metadata.issuer), str(begun.metadata.token_endpoint)
    exchanged = posted(begun.client, issuer, endpoint, form)
    if not exchanged.is_success:
        raise SignInError(
            f"{told}: the authorization server {issuer} gives status {exchanged.status_code} for its code"
        )
    try:
        tokens = OAuthToken.model_validate_json(exchanged.content)
    except ValidationError as error:
        raise SignInError(f"{told}: the authorization server {issuer} gives an answer that is not a token") from error
    if not tokens.scope:  # those that were asked for (RFC 6749, 5.1)
        tokens = tokens.model_copy(update={"scope": begun.scope})
    revocation = begun.metadata.revocation_endpoint
    return Tokens(
        server=begun.server,
        user=begun.user,
        tokens=tokens,
        expires=expiry(tokens),
        client=begun.client,
        issuer=issuer,
        token_endpoint=endpoint,
        revocation_endpoint=str(revocation) if revocation else None,
        resource=begun.resource,
    )


class _BegunError(Exception):
    """Ends the first half, where the library would wait for the answer."""


class _Client:
    """The client of a flow, in memory; tokens of before are not used."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self._client = client

    def known(self) -> OAuthClientInformationFull:
        """The client, after it was registered."""
        if self._client is None:
            raise SignInError("no client was registered")
        return self._client

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """The library gets no tokens."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


async def _not_yet() -> AuthorizationCodeResult:
    raise _BegunError


async def _check_request(auth: OAuthClientProvider, request: httpx2.Request) -> None:
    """Refuses requests to unsafe addresses, and to register a client anywhere without metadata.

    Raises:
        ValueError: The address is unsafe, or the authorization server publishes no metadata.
    """
    server = httpx2.URL(auth.context.server_url)
    check_safe(server.host, request.url)
    if request.method == "POST" and request.url != server and auth.context.oauth_metadata is None:
        raise ValueError("it names no authorization server, or this one publishes no metadata")


def _checked(server: str, metadata: OAuthMetadata | None) -> OAuthMetadata:
    """Metadata whose addresses, to which the person, the code and the tokens will go, are safe.

    Raises:
        SignInError: One is unsafe, or there are no metadata.
    """
    if metadata is None:
        raise SignInError(f"{server}: its authorization server publishes no metadata")
    home = httpx2.URL(server).host
    try:
        for address in (metadata.authorization_endpoint, metadata.token_endpoint, metadata.revocation_endpoint):
            if address is not None:
                check_safe(home, httpx2.URL(str(address)))
                if "@" in urlsplit(str(address)).netloc:
                    raise ValueError(f"an address at {address.host} contains a user name, which looks like a host")
    except ValueError as error:
        raise SignInError(f"signing in to {server} failed: {error}") from error
    return metadata


def check_safe(home: str, url: httpx2.URL) -> None:
    """Refuses to send codes and tokens unencrypted over a network, and to let a server reach this machine.

    Args:
        home: Host of the server that asks for sign-in.
        url: Where something is to be sent.

    Raises:
        ValueError: The address is not https, or is of this machine although the server is not.
    """
    if of_this_machine(url.host) and not of_this_machine(home):
        raise ValueError(f"{home} leads to an address of this machine")
    if url.scheme != "https" and url.host not in LOOPBACK:
        raise ValueError(f"{url.copy_with(query=None)} is not https")


async def _prepare(server: str, scope: str | None, response: httpx2.Response) -> None:
    """Bounds an answer, and lets an API that does not know the greeting of MCP count as one that asks for sign-in.

    The library registers a client for the scopes that the server asks for, and asks for those: here, for ``scope``.
    """
    response.stream = BoundedBody(response, _LARGEST, lambda fault: None, lambda: 0)
    if response.request.url == httpx2.URL(server) and response.is_client_error:
        response.status_code = 401
        if scope:
            asked = response.headers.get("www-authenticate", "Bearer")
            response.headers["www-authenticate"] = f'Bearer scope="{scope}", {asked}'


def _said(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"an answer is malformed: {error.errors(include_input=False)[0]['msg']}"
    return f"{error}" or type(error).__name__
