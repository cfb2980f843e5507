"""The addresses of this server's sign-in page and callback, and checks of where codes and tokens may be sent."""

from __future__ import annotations

import os
from contextlib import suppress
from urllib.parse import quote

from callsheet.agents.safety.secrets import origin
from callsheet.graphs.errors import CatalogError, SettingsError
from callsheet.graphs.text.addresses import of_this_machine

PAGE = "/callsheet/sign-in"
VARIABLE = "CALLSHEET_URL"
CALLBACK = f"{PAGE}/callback"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OWN: list[str] = []


def serve_at(address: str) -> None:
    """Sets the address at which browsers reach this process; ``CALLSHEET_URL`` overrides it."""
    _OWN[:] = [address.rstrip("/")]


def server_address() -> str:
    """Returns the address of this server for browsers; empty if this process is no server.

    Raises:
        SettingsError: It is not an address of https or of this machine, or a server lacks ``CALLSHEET_URL``.
    """
    address = os.environ.get(VARIABLE) or next(iter(_OWN), "")
    if not address and "LANGSERVE_GRAPHS" not in os.environ:  # LangGraph's servers set it
        return ""
    address = address or os.environ.get("LANGGRAPH_API_URL", "")
    with suppress(CatalogError):
        scheme, host, _ = origin(address)
        if host and (scheme == "https" or (scheme == "http" and host in _LOOPBACK)):
            return address.partition("?")[0].rstrip("/")
    raise SettingsError(f"set {VARIABLE} to the address of this server as browsers know it, https://...")


def page_hint(agent: str) -> str:
    """Returns a hint for the error of a call: the page where a user signs in to an agent; empty without a server."""
    try:
        address = server_address()
    except SettingsError as error:
        return f"; its users cannot sign in on a page: {error}"
    page = f"{address}{PAGE}?agent={quote(agent, safe='')}"
    return f", or sign in at {page} ; then repeat the request" if address else ""


def is_loopback(address: str) -> bool:
    """Returns whether a valid address is a loopback address of this machine."""
    return origin(address)[1] in _LOOPBACK


def check_safe(home: str, address: str) -> None:
    """Raises an error if codes would be sent unencrypted, or if a remote ``home`` leads to this machine.

    Raises:
        ValueError: The address is not https, or is of this machine although the server is not.
    """
    scheme, host, _ = origin(address)
    if of_this_machine(host) and not of_this_machine(home):
        raise ValueError(f"{home} leads to an address of this machine")
    if scheme != "https" and host not in _LOOPBACK:
        raise ValueError(f"{address.partition('?')[0]} is not https")
