"""Reads addresses on the web that somebody else has written."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

from callsheet.graphs.text.regex import linear

_ADDRESS = linear(r"(?i)https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:[/?][!-\[\]-~]*)?")
"""An address that every program reads in the same way: no user, no backslash, nothing that is not visible ASCII."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class WebAddress:
    """Scheme, host and port of an address."""

    scheme: str
    host: str
    port: int


def web_address(text: str) -> WebAddress | None:
    """Returns scheme, host and port of an address; None if programs could read it in different ways."""
    if not _ADDRESS.fullmatch(text):
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    return WebAddress(scheme, (parts.hostname or "").lower(), port or _PORTS[scheme])


def of_this_machine(host: str) -> bool:
    """Returns whether a host is this machine, or an address that only this machine reaches, like cloud metadata."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        found = IPv6Address(name) if ":" in name else IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or found.is_unspecified or found.is_link_local
