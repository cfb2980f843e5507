"""The sign-in that a run waits for."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from callsheet.agents.safety.faults import named_in
from callsheet.agents.safety.secrets import of_server
from callsheet.agents.servers.oauth.callback import callback_at, is_loopback, redirect_address
from callsheet.agents.servers.oauth.pending_sign_ins import PendingSignIn, begin_sign_in
from callsheet.agents.servers.oauth.stored_tokens import SignInError
from callsheet.graphs.catalog.formats.server_config import ServerConfig

_NO_USERS = (
    "this server does not know its users, so a sign-in would be for everybody: whoever runs it can sign in on the "
    "command line"
)


async def sign_in_of_run(
    server: ServerConfig, environ: Mapping[str, str], *, user: str, run: str, address: str = ""
) -> PendingSignIn:
    """Begins the sign-in that a run needs, or finds the one that it waits for already.

    Args:
        server: The server, variables not expanded.
        environ: Variables for ``${VAR}``.
        user: The user of the run; empty for whoever runs the program.
        run: The run.
        address: Address of the server of Callsheet to which the answer is to come; empty: as configured.

    Raises:
        SignInError: It cannot begin; or a stranger could sign in for others.
        SettingsError: There is no key to encrypt it, or no address for the answer.
        CatalogError: A variable of the server is not set.
        OSError: It cannot be stored.
    """
    full = server.expanded(environ)
    redirect = callback_at(address) if address else redirect_address()
    if not user and not is_loopback(redirect):
        raise SignInError(_NO_USERS)
    if "@" in urlsplit(full.url or "").netloc:
        raise SignInError("its address holds a user and a password: write it without them")
    begun = await begin_sign_in(full.url or "", redirect, user=user, run=run, confirmed=bool(user))
    page = begun.authorization.page
    if of_server(full, named_in(server, environ)).text(page) != page:
        raise SignInError("its address holds a secret, which the page of the authorization server would show")
    return begun
