"""Signing in to a server in a browser, with the answer on a loopback address."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from mcp.shared.auth import OAuthClientInformationFull

from callsheet.agents.servers.oauth.callback import loopback_address
from callsheet.agents.servers.oauth.pending_sign_ins import begin_sign_in, pending
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens, Tokens

_PAUSE = 0.2


async def browser_sign_in(
    server: str,
    open_page: Callable[[str], Awaitable[None]],
    *,
    user: str = "",
    client: OAuthClientInformationFull | None = None,
    scope: str | None = None,
    port: int = 0,
    seconds: float = 300.0,
) -> Tokens:
    """Signs in: discovery, registration, consent in a browser, and the exchange of the code, with PKCE.

    Args:
        server: Address of the server.
        open_page: Shows the authorization server's page to the person.
        user: Who signs in.
        client: A client that was registered before; None registers one.
        scope: As in ``begin_sign_in``.
        port: Port of the loopback address; 0 for any. A client that was registered before may need a certain one.
        seconds: How long to wait for the person.

    Returns:
        The tokens, which are stored.

    Raises:
        SignInError: The server asks for no sign-in, its metadata are not those of its own, the person refused, the
            time is over, or a request failed.
        SettingsError: There is no key to encrypt the tokens.
    """
    redirect = loopback_address(port)
    begun = await begin_sign_in(server, redirect, user=user, client=client, scope=scope, seconds=seconds)
    await open_page(begun.authorization.page)
    if not await signed_in(begun.state, begun.expires):
        raise SignInError(f"nobody signed in to {server} within {seconds:g} s")
    tokens = await asyncio.to_thread(StoredTokens(server, user).read)
    if tokens is None:
        raise SignInError(f"the sign-in to {server} was dropped")
    return tokens


async def signed_in(state: str, until: float) -> bool:
    """Waits for the person.

    Args:
        state: Names the sign-in.
        until: How long to wait, in seconds since 1970.

    Returns:
        Whether the answer has come: the tokens are stored, or can be confirmed.

    Raises:
        SignInError: The sign-in has failed.
    """
    while time.time() < until:
        waiting = await asyncio.to_thread(pending, state)
        if waiting is None or waiting.code:
            # What has expired is dropped as well.
            return time.time() < until
        if waiting.problem:
            raise SignInError(waiting.problem)
        await asyncio.sleep(_PAUSE)
    return False
