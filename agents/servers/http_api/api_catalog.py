"""APIs as agents of a catalog: specifications from a file or an address, by the pins that hold for servers."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from callsheet.agents.calls.limits import Limits
from callsheet.agents.safety.origins import origin
from callsheet.agents.safety.secrets import of_server
from callsheet.agents.servers.catalogs.listings import LastKnown, LastListings, Listing
from callsheet.agents.servers.catalogs.server_catalog import read_listings
from callsheet.agents.servers.faults import named_in
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.mcp_format import NOT_CALLABLE, Problem
from callsheet.graphs.catalog.formats.openapi_documents import LARGEST, parsed
from callsheet.graphs.catalog.formats.openapi_operations import Api, api_of, id_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig, is_address
from callsheet.graphs.catalog.loaded import SourceCatalog, joined
from callsheet.graphs.storage import cache_folder, private_folder, replace_bytes
from callsheet.graphs.trust.pins import Listed, PinBook

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


_NAMELESS = "api"


class _NoListings(LastListings):
    """The specification itself is kept; its listings only where they are compared, because they can be large."""

    def keep(self, agent_id: str, server: ServerConfig, listing: Listing) -> None:
        """Keeps nothing."""

    def last(self, agent_id: str, server: ServerConfig) -> LastKnown | None:
        """Nothing."""
        return None


def load_apis(
    config: Mapping[str, ServerConfig],
    *,
    limits: Limits | None = None,
    pins: PinBook | None = None,
    agreed: Collection[str] = (),
    anew: bool = False,
) -> SourceCatalog:
    """Reads specifications, and fetches those at addresses that were not fetched lately (``Limits.fresh``).

    Args:
        config: How each is reached, by the name of its entry; the empty name stands for the title.
        limits: Bounds of time and size.
        pins: What was accepted of them; what differs from it is left out. Everything is taken where None.
        agreed: Entries to whose present address a person has agreed.
        anew: Fetches them all, and compares them with the last time that this was done.

    Returns:
        Agents by tag. A specification that cannot be fetched is a problem; its last copy is used if there is one.

    Raises:
        CatalogError: A specification cannot be read.
        TrustError: The pins are not reliable.
        SettingsError: A limit of an entry cannot work.
    """
    parts: list[SourceCatalog] = []
    for name, server in config.items():
        own = (limits or Limits()).own(server.callsheet.limits)
        for limit in server.callsheet.tools.values():
            own.own(limit)
        parts.append(_part(name, server, own, pins=pins, agreed=name in agreed, anew=anew))
    return joined(parts)


def _part(
    name: str, server: ServerConfig, limits: Limits, *, pins: PinBook | None, agreed: bool, anew: bool
) -> SourceCatalog:
    label = name or server.openapi
    try:
        copy = copied(server, limits, os.environ, anew=anew)
        found = api(server)
    except UnreachableError as error:
        return SourceCatalog(problems=(Problem(label, "start", str(error)),))
    name = name or id_of(found.title) or _NAMELESS
    if found.size > limits.tools:
        many = f"it has {found.size:,} operations, and no more than {limits.tools:,} are taken"
        raise CatalogError(f"{server.openapi}: {many}: raise its limit 'tools' if it may")
    address, why = address_of(server, found)
    listings = LastListings() if anew else _NoListings()
    located = server.model_copy(update={"url": address or None})
    part = _read(name, located, found, pins=pins, agreed=agreed, listings=listings)
    problems = [Problem(name, "malformed", message) for message in found.problems]
    if why:
        problems.insert(0, Problem(name, NOT_CALLABLE, why))
    if copy.error:
        problems.insert(0, Problem(label, "start", f"{copy.error}\nThe copy of {copy.when} is used"))
    ids = [agent.id for agent in part.agents]
    return replace(
        part,
        connections=part.connections if address else {},
        problems=(*problems, *part.problems),
        down={agent: copy.when for agent in ids if copy.error},
        remembered={agent: copy.when for agent in ids if copy.when and not copy.error},
    )


def _read(
    name: str, server: ServerConfig, found: Api, *, pins: PinBook | None, agreed: bool, listings: LastListings
) -> SourceCatalog:
    config = {f"{name}-{tag}" if tag else name: server.model_copy(update={"tag": tag}) for tag in found.agents}
    answers = {agent: listing_of(found, config[agent].tag) for agent in config}
    if pins:
        _pin_new_tags(name, config, pins)
    # Consent covers an address only if the entry names it.
    consented = tuple(config) if agreed and server.url else ()
    return read_listings(config, answers, pins=pins, agreed=consented, listings=listings)


def listing_of(found: Api, tag: str) -> Listing:
    """What a specification says of one of its agents; nothing if it has no such tag by now."""
    agent = found.agents.get(tag)
    if agent is None:
        return Listing()
    return Listing(tools=agent.entries, name=agent.name, version=found.version, description=agent.description)


def _pin_new_tags(name: str, config: Mapping[str, ServerConfig], pins: PinBook) -> None:
    """Pins the new tags of a known specification without their tools, which a person then has to accept."""
    known = pins.servers()
    if any(agent == name or agent.startswith(f"{name}-") for agent in known if known[agent].command.get("openapi")):
        about = {"name": "", "description": "", "instructions": ""}
        pins.admit({agent: Listed(server, about, ()) for agent, server in config.items() if agent not in known})
