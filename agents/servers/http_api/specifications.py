"""Specifications as they are read: from a file, or from an address, of which a copy is kept."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from callsheet.agents.safety.faults import named_in
from callsheet.agents.safety.origins import origin
from callsheet.agents.safety.secrets import of_server
from callsheet.agents.servers.limits import Limits
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.openapi_documents import LARGEST, parsed
from callsheet.graphs.catalog.formats.openapi_operations import Api, api_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig, is_address
from callsheet.graphs.storage import cache_folder, private_folder, replace_bytes

_MOST_REDIRECTS = 5
_READ = 4
"""Specifications that are kept in memory."""


class UnreachableError(CatalogError):
    """A specification cannot be fetched now."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A specification on this machine.

    Attributes:
        when: When it was fetched, in UTC, ISO 8601; empty for a file of the user, or one that was fetched now.
        error: Why it could not be fetched now.
    """

    file: Path
    when: str = ""
    error: str = ""


def api(server: ServerConfig) -> Api:
    """The specification of a server, from its file or its copy; it is parsed again if the file has changed.

    Raises:
        CatalogError: It cannot be read.
    """
    file = _file(server)
    try:
        state = file.stat()
    except OSError as error:
        raise CatalogError(f"{server.openapi}: cannot be read: {error.strerror}") from error
    given = (
        *server.headers,
        *(name for name, _ in parse_qsl(urlsplit(server.url or "").query, keep_blank_values=True)),
    )
    return _parsed(str(file), server.openapi, state.st_mtime_ns, state.st_size, tuple(sorted(set(given))))


def copied(server: ServerConfig, limits: Limits, environ: Mapping[str, str], *, anew: bool) -> Copy:
    """The file of a specification; one at an address is fetched, unless that was done within ``limits.fresh`` seconds.

    Raises:
        UnreachableError: It cannot be fetched, and there is no copy.
        CatalogError: A variable is not set.
    """
    file = _file(server)
    if not is_address(server.openapi):
        return Copy(file)
    when = ""
    with suppress(OSError):
        fetched = file.stat().st_mtime
        when = datetime.fromtimestamp(fetched, UTC).isoformat(timespec="seconds")
        if not anew and 0 <= time.time() - fetched <= limits.fresh and limits.fresh:
            return Copy(file, when)
    full = server.expanded(environ)
    hidden = of_server(full, named_in(server, environ), everything=True)
    try:
        content = _fetched(full, limits)
        private_folder(file.parent)
        replace_bytes(file, content)
    except (UnreachableError, OSError) as error:
        said = hidden.text(str(error))
        if when:
            return Copy(file, when, said)
        raise UnreachableError(said) from None
    return Copy(file)


def address_of(server: ServerConfig, found: Api) -> tuple[str, str]:
    """The address that calls go to, and why there is none.

    It is the catalog's; that of the specification only if this is the user's own file, or is at the same host.
    """
    if server.url:
        return server.url, ""
    remote = is_address(server.openapi)
    address = urljoin(server.openapi, found.server) if remote else found.server
    cure = 'name it as "url" in an entry of an mcp.json, beside "openapi"'
    if not is_address(address) or "{" in address:
        return "", f"the specification names no address of its server, so its tools can be found but not called: {cure}"
    if remote and origin(address) != origin(server.openapi):
        told = f"the specification is from another host than the server that it names, {address}"
        return "", f"{told}, so its tools can be found but not called: if you agree to that address, {cure}"
    return address.partition("?")[0], ""


def _file(server: ServerConfig) -> Path:
    if not is_address(server.openapi):
        return Path(server.openapi)
    key = "\n".join((server.openapi, *sorted(server.headers)))
    return cache_folder() / "specifications" / hashlib.sha256(key.encode()).hexdigest()[:32]


@lru_cache(maxsize=_READ)
def _parsed(file: str, where: str, changed: int, size: int, given: tuple[str, ...]) -> Api:
    """The arguments ``changed`` and ``size`` tell one state of the file from another."""
    if size > LARGEST:
        raise CatalogError(f"{where}: larger than {LARGEST // 1_000_000} MB: leave out what is not needed")
    try:
        text = Path(file).read_bytes()
    except OSError as error:
        raise CatalogError(f"{where}: cannot be read: {error.strerror}") from error
    return api_of(parsed(text, where), given=given)


def _fetched(server: ServerConfig, limits: Limits) -> bytes:
    """The text at the address of a specification; headers are sent only to the host of the server itself."""
    import httpx2

    from callsheet.agents.servers.transport.http import certificates

    same = server.url is not None and origin(server.url) == origin(server.openapi)
    headers = {**(server.headers if same else {}), "accept-encoding": "identity"}
    host, until = origin(server.openapi), time.monotonic() + limits.start
    timeout = httpx2.Timeout(limits.list, connect=limits.start)
    try:
        with httpx2.Client(headers=headers, timeout=timeout, verify=certificates(), follow_redirects=False) as client:
            request: Any = client.build_request("GET", server.openapi)
            for _ in range(_MOST_REDIRECTS):
                response = client.send(request, stream=True)
                if (request := response.next_request) is None:
                    return _body(response, until)
                response.close()
                if origin(str(request.url)) != host:
                    raise UnreachableError(
                        f"{server.openapi}: redirects to another host, {request.url.host}: give that address"
                    )
            raise UnreachableError(f"{server.openapi}: more than {_MOST_REDIRECTS} redirects")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
        if isinstance(error, CatalogError):
            raise
        raise UnreachableError(f"{server.openapi}: cannot be fetched: {type(error).__name__}: {error}") from error


def _body(response: Any, until: float) -> bytes:
    with closing(response):
        if response.status_code != 200:
            raise UnreachableError(f"{response.url}: answers with status {response.status_code}, not a specification")
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            raise UnreachableError(f"{response.url}: sent a compressed answer, which is not read")
        content = bytearray()
        for piece in response.iter_raw():
            content += piece
            if len(content) > LARGEST:
                raise UnreachableError(f"{response.url}: larger than {LARGEST // 1_000_000} MB")
            if time.monotonic() > until:
                raise UnreachableError(f"{response.url}: not fetched in time: raise its limit 'start'")
    return bytes(content)
