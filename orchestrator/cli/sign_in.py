"""``callsheet sign-in`` and ``callsheet sign-out``."""

from __future__ import annotations

import asyncio
import json
import os
import webbrowser
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.catalog.loading import servers_in
from callsheet.orchestrator.cli.shared_options import json_option
from callsheet.orchestrator.run.process.environment import Environment

if TYPE_CHECKING:
    from callsheet.agents.servers.oauth.stored_tokens import StoredTokens

_CATALOG = click.option(
    "--catalog",
    "catalogs",
    multiple=True,
    metavar="PATH",
    help="The mcp.json that names the server; not for an address.",
)
_USER = click.option(
    "--user", default="", metavar="NAME", help="User of your server, by the name that its authentication returns."
)


@click.command("sign-in", short_help="Sign in to a remote server with OAuth, in a browser.")
@click.argument("server")
@click.option("--no-browser", is_flag=True, help="Print the address of the page instead of opening it.")
@click.option(
    "--client-id", metavar="ID", help="Client that you have registered; its secret is in CALLSHEET_CLIENT_SECRET."
)
@click.option("--scope", metavar="WORDS", help="Scopes to ask for.  [default: those that the server requires]")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port of the loopback address.  [default: any]")
@click.option(
    "--seconds",
    default=300.0,
    show_default=True,
    type=click.FloatRange(min=1),
    help="Seconds to wait for your sign-in.",
)
@_USER
@_CATALOG
@json_option
def sign_in(
    server: str,
    catalogs: tuple[str, ...],
    user: str,
    client_id: str | None,
    scope: str | None,
    port: int,
    seconds: float,
    *,
    no_browser: bool,
    as_json: bool,
) -> int:
    """Sign in to SERVER (a name in the catalog, or an address) with OAuth in a browser.

    The tokens are stored encrypted, for this address only, and are refreshed when they expire.

    \b
    Example:
      callsheet sign-in tickets --catalog mcp.json
    """
    stored = _stored(server, catalogs, user)

    from mcp.shared.auth import OAuthClientInformationFull

    from callsheet.agents.servers.oauth.sign_in import browser_sign_in

    secret = os.environ.get("CALLSHEET_CLIENT_SECRET")
    method = "client_secret_basic" if secret else "none"
    client = (
        OAuthClientInformationFull(client_id=client_id, client_secret=secret, token_endpoint_auth_method=method)
        if client_id
        else None
    )

    async def open_page(page: str) -> None:
        click.echo(f"sign in here: {page}", err=True)
        if not no_browser:
            await asyncio.to_thread(webbrowser.open, page)

    flow = browser_sign_in(stored.server, open_page, user=user, client=client, scope=scope, port=port, seconds=seconds)
    tokens = asyncio.run(flow)
    if as_json:
        click.echo(
            json.dumps({"server": tokens.server, "user": user, "issuer": tokens.issuer, "expires": tokens.expires})
        )
    else:
        click.echo(f"signed in to {tokens.server} by {tokens.issuer}", err=True)
    return 0


@click.command("sign-out", short_help="Revoke the tokens of a sign-in and delete them.")
@click.argument("server")
@_USER
@_CATALOG
@json_option
def sign_out(server: str, catalogs: tuple[str, ...], user: str, *, as_json: bool) -> int:
    """Delete the tokens of SERVER, and revoke them if the authorization server supports it.

    \b
    Example:
      callsheet sign-out tickets --catalog mcp.json
    """
    stored = _stored(server, catalogs, user)

    from callsheet.agents.servers.oauth.stored_tokens import revoke

    tokens = stored.read()
    if tokens is None:
        click.echo(f"nobody is signed in to {stored.server}", err=True)
        revoked = False
    else:
        revoked = revoke(tokens)
        stored.remove()
        told = "and its tokens are revoked" if revoked else "its tokens were not revoked, and expire by themselves"
        click.echo(f"signed out of {stored.server}; {told}", err=True)
    if as_json:
        click.echo(json.dumps({"server": stored.server, "user": user, "signed_out": bool(tokens), "revoked": revoked}))
    return 0 if tokens else 1


def _stored(server: str, catalogs: tuple[str, ...], user: str) -> StoredTokens:
    """The stored tokens for a server.

    Raises:
        SettingsError: The catalog has no such server, or it is not one that is reached by an address.
    """
    from callsheet.agents.servers.oauth.stored_tokens import StoredTokens
    from callsheet.graphs.catalog.formats.server_config import is_address

    if is_address(server):
        return StoredTokens(_plain(server), user)
    named = catalogs or Environment().catalog
    if not named:
        raise SettingsError(f"{server!r} is no address: name the mcp.json that has it with --catalog")
    servers = {name: entry for source in named for name, entry in servers_in(source).items()}
    if server not in servers:
        known = ", ".join(sorted(name for name, entry in servers.items() if entry.url)) or "none"
        raise SettingsError(f"the catalog has no server {server!r}; servers with an address: {known}")
    address = servers[server].expanded(os.environ).url
    if not address:
        raise SettingsError(f"{server!r} is a command of this machine, and asks for no sign-in")
    return StoredTokens(_plain(address), user)


def _plain(address: str) -> str:
    """The address, which stands in messages.

    Raises:
        SettingsError: It holds a user or a password, or is malformed.
    """
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise SettingsError("the address of the server is malformed") from error
    if "@" in parts.netloc:
        raise SettingsError(f"write the address of {parts.hostname} without user and password: sign-in replaces them")
    return address
