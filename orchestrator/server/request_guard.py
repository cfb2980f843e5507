"""Decides which requests are answered: those for a name of this server, from programs and from its own pages.

Any web page can make a browser send requests to this machine, and an attacker's host name can resolve to it (DNS
rebinding). Without authentication, that would be enough to run tools. So a request is refused first if its ``Host`` is
not a name of this server, if a page of another site sends it, or if its body has a type that browsers send to other
sites without a preflight (``text/plain``, forms).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from callsheet.graphs import SettingsError, shown

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[^\s\[\]:/?#@\\]{1,255})(?::(\d{1,5}))?")
_JSON = re.compile(r"application/([\w.-]+\+)?json")
_PORTS = {"http": "80", "https": "443"}
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# LangGraph's own CORS rules, which these replace, expose the same headers.
_READABLE = ("x-pagination-total", "x-pagination-next", "content-location")
# Root path of LangGraph's internal calls within the process; requests from outside cannot set it.
_WITHIN = "/noauth"
_FOREIGN_HOST = (
    "this server does not have the name {!r}: if it should, add it to CALLSHEET_HOSTS (names separated by commas)"
)
_FOREIGN_ORIGIN = (
    "pages of {!r} may not use this server: if they should, add that origin to CALLSHEET_ORIGINS "
    "(https://name[:port], separated by commas)"
)
_FOREIGN_PAGE = "a page of another site sends this request: open the address directly"
_BODY = "the body must be JSON, and the request must declare it (content-type: application/json), not {!r}"


def gate(hosts: Collection[str] = (), origins: Collection[str] = ()) -> list[Middleware]:
    """Returns the middleware that refuses foreign requests, with its CORS rules.

    Args:
        hosts: Further names of this server, besides those of this machine (``localhost``, loopback addresses, and the
            address of the connection); ``*.example.com`` for all subdomains, ``*`` for any name.
        origins: Origins of other sites whose pages may use this server: ``https://name[:port]``.

    Raises:
        SettingsError: A host name or origin is invalid.
    """
    names = [_checked_host(host) for host in hosts]
    sites = [_checked_origin(origin) for origin in origins]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=sites,
        allow_methods=["*"],
        allow_headers=["*"],
        allow_private_network=True,
        expose_headers=_READABLE,
    )
    return [Middleware(Gate, hosts=names, origins=sites), cors]


class Gate:
    """Refuses requests for foreign host names, from foreign pages, and with bodies that any page can send."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origins)
        self._names = frozenset(host for host in hosts if not host.startswith("*"))
        self._endings = tuple(host[1:] for host in hosts if host.startswith("*."))
        self._any = "*" in hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it with the reason for refusing it."""
        within = scope.get("root_path", "").split("/")[:2] == ["", _WITHIN[1:]]
        refusal = None if within or scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": refusal[1][:120]})
        else:
            status, why = refusal
            # LangGraph's clients read one field, the explorer's page the other.
            await JSONResponse({"error": why, "detail": why}, status)(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        named = headers.getlist("host")
        if len(named) != 1 or not self._is_ours(named[0], scope):
            return 400, _FOREIGN_HOST.format(shown(", ".join(named)[:100]))
        for origin in headers.getlist("origin"):
            if origin.lower() not in self._origins and not _same(origin, named[0]):
                return 403, _FOREIGN_PAGE if origin == "null" else _FOREIGN_ORIGIN.format(shown(origin[:100]))
        if "origin" not in headers and not _own_page(headers, scope):
            return 403, _FOREIGN_PAGE
        return _misread(headers, scope)

    def _is_ours(self, host: str, scope: Scope) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match[1].lower().removesuffix(".").strip("[]")
        if self._any or name == "localhost" or name in self._names or name.endswith(self._endings):
            return True
        address = _address(name)
        came_in_on = scope.get("server") or ("", 0)
        return address is not None and (address.is_loopback or address == _address(came_in_on[0] or ""))


def _same(origin: str, host: str) -> bool:
    """Returns whether an origin is the server itself, under the name in the request."""
    scheme, _, place = origin.lower().partition("://")
    port = _PORTS.get(scheme)
    return port is not None and place.removesuffix(f":{port}") == host.lower().removesuffix(f":{port}")


def _own_page(headers: Headers, scope: Scope) -> bool:
    """Returns whether a request without an origin comes from a program or one of our pages, or opens a page.

    A page opened by a link is shown to the user; the page with the link cannot read it.
    """
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    opens = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return opens and scope.get("method") in ("GET", "HEAD")


def _misread(headers: Headers, scope: Scope) -> tuple[int, str] | None:
    """Returns the refusal of a body that is not JSON; None if it is, or if there is no body."""
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if scope.get("method") not in _WRITES or not has_body:
        return None
    kinds = [kind.partition(";")[0].strip().lower() for kind in headers.getlist("content-type")] or [""]
    if all(_JSON.fullmatch(kind) for kind in kinds):
        return None
    return 415, _BODY.format(shown(", ".join(kinds)[:100]))


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(name)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _checked_host(host: str) -> str:
    bare = host.strip().lower()
    name = bare.strip("[]")
    if bare == "*" or _address(name) or re.fullmatch(r"(\*\.)?[^\s\[\]:/?#@*\\]{1,255}", name):
        return name
    raise SettingsError(f"CALLSHEET_HOSTS: {host!r} is not a host name: write names without scheme and port, or *.name")


def _checked_origin(origin: str) -> str:
    bare = origin.strip().lower().rstrip("/")
    parts = urlsplit(bare)
    if parts.scheme in _PORTS and _HOST.fullmatch(parts.netloc) and bare == f"{parts.scheme}://{parts.netloc}":
        return bare.removesuffix(f":{_PORTS[parts.scheme]}")
    raise SettingsError(f"CALLSHEET_ORIGINS: {origin!r} is not an origin: write https://name or http://name:port")
