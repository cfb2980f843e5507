"""Whether two addresses are of one server, and which hosts are this machine: credentials and calls go to no other."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address

from callsheet.graphs.catalog.errors import CatalogError


def origin(address: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address, as the client that sends requests reads it.

    Raises:
        CatalogError: It is none.
    """
    import httpx2

    try:
        url = httpx2.URL(address)
    except (httpx2.InvalidURL, ValueError) as error:
        raise CatalogError(f"{address!r} is not an address: {error}") from error
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


def of_this_machine(host: str) -> bool:
    """Whether a host is this machine, in any of its forms, or is found on its link only, as metadata of clouds are."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        found = IPv6Address(name) if ":" in name else IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or found.is_unspecified or found.is_link_local
