"""``callsheet sign-in`` and ``callsheet sign-out`` store and delete tokens of servers."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from callsheet.graphs.catalog.formats.server_config import is_address
from callsheet.graphs.errors import SettingsError, lookup
from callsheet.graphs.sources.loading import servers_in
from callsheet.orchestrator.cli.browser import open_privately
from callsheet.orchestrator.cli.shared_options import catalog_option, catalogs_of, json_option, report, together

if TYPE_CHECKING:
    from callsheet.agents.servers.oauth.stored_tokens import StoredTokens


_of_server = together(
    click.argument("server"),
    click.option("--user", default="", metavar="NAME", help="Id of the user of your server who gets the tokens."),
    catalog_option,
    json_option,
)
"""The argument and the options that both commands have."""


@click.command("sign-in", short_help="Sign in to a remote server with OAuth, in a browser.")
@click.option("--no-browser", is_flag=True, help="Print the address of the page instead of opening it.")
@click.option(
    "--client-id", metavar="ID", help="Client that you have registered; its secret is in CALLSHEET_CLIENT_SECRET."
)
@click.option(
    "--scope", default="", metavar="WORDS", help="Scopes to ask for.  [default: those that the server requires]"
)
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port of the loopback address.  [default: any]")
@_of_server
def sign_in(
    server: str,
    catalogs: tuple[str, ...],
    user: str,
    client_id: str | None,
    scope: str,
    port: int,
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

    client = None
    if client_id:
        secret = os.environ.get("CALLSHEET_CLIENT_SECRET")
        method = "client_secret_basic" if secret else "none"
        about = {"client_id": client_id, "client_secret": secret, "token_endpoint_auth_method": method}
        client = OAuthClientInformationFull.model_validate(about)

    async def open_page(page: str) -> None:
        click.echo(f"sign in here: {page}", err=True)
        if not no_browser:
            await asyncio.to_thread(open_privately, page)

    flow = browser_sign_in(stored.server, open_page, user=user, client=client, scope=scope, port=port)
    tokens = asyncio.run(flow)
    content = {"server": tokens.server, "user": user, "issuer": tokens.issuer, "expires": tokens.expires}
    report(content, f"signed in to {tokens.server} by {tokens.issuer}", as_json=as_json)
    return 0


@click.command("sign-out", short_help="Delete the tokens of a sign-in.")
@_of_server
def sign_out(server: str, catalogs: tuple[str, ...], user: str, *, as_json: bool) -> int:
    """Delete the tokens of SERVER. They expire by themselves, or its authorization server revokes them.

    \b
    Example:
      callsheet sign-out tickets --catalog mcp.json
    """
    stored = _stored(server, catalogs, user)
    tokens = stored.read()
    stored.remove()
    did = f"signed out of {stored.server}" if tokens else f"nobody is signed in to {stored.server}"
    report({"server": stored.server, "user": user, "signed_out": bool(tokens)}, did, as_json=as_json)
    return 0 if tokens else 1


def _stored(server: str, catalogs: tuple[str, ...], user: str) -> StoredTokens:
    """Returns the stored tokens for a server.

    Raises:
        SettingsError: The catalog has no such server, or its address is none, holds a password, or is malformed.
    """
    from callsheet.agents.servers.oauth.stored_tokens import StoredTokens

    address = server
    if not is_address(server):
        servers = {name: entry for source in catalogs_of(catalogs) for name, entry in servers_in(source).items()}
        address = lookup(servers, server, "server", "catalog").expanded(os.environ).url or ""
        if not address:
            raise SettingsError(f"{server!r} runs as a command on this machine, so it needs no sign-in")
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise SettingsError("the address of the server is malformed") from error
    if "@" in parts.netloc:  # the address stands in messages
        raise SettingsError(f"write the address of {parts.hostname} without user and password: sign-in replaces them")
    return StoredTokens(address, user)
