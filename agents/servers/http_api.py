"""Makes agents from specifications of APIs over HTTP, and sends requests only to the address of their operation.

Specifications are pinned like servers. A connection has the limits, faults and redaction of an MCP session.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2

from callsheet.agents.calls.call_context import LOOP, Limits
from callsheet.agents.calls.outcome import Fault
from callsheet.agents.safety.secrets import named_in, of_server, origin
from callsheet.agents.servers.api_requests import api_request
from callsheet.agents.servers.catalogs.fetching import (
    UnreachableError,
    fetch_catalog,
    fetch_specification,
    followed,
)
from callsheet.agents.servers.catalogs.last_listings import LastListings
from callsheet.agents.servers.catalogs.listings import PATIENCE, UNHEARD, Listing, own_limits
from callsheet.agents.servers.catalogs.server_catalog import read_listings, unknown_names
from callsheet.agents.servers.server_questions import Heard
from callsheet.agents.servers.session import Session
from callsheet.agents.servers.transport.http import BoundedHttpClient
from callsheet.agents.servers.transport.refusals import BUSY, busy, status_of
from callsheet.agents.servers.transport.stdio import ChildProcess
from callsheet.graphs.catalog.formats.manifests import NOT_CALLABLE, Problem
from callsheet.graphs.catalog.formats.openapi_documents import parse_specification
from callsheet.graphs.catalog.formats.openapi_operations import META, Api, HttpCall, api_of, id_part, is_json
from callsheet.graphs.catalog.formats.server_config import ServerConfig, is_address
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.sources.cards import copy_of, read_cards
from callsheet.graphs.sources.loaded import SourceCatalog, join_parts
from callsheet.graphs.sources.loading import specification_text
from callsheet.graphs.storage import private_folder, replace_bytes
from callsheet.graphs.trust.consent import with_trust
from callsheet.graphs.trust.pins import Listed, PinBook

_NAMELESS = "api"
_UNKNOWN = frozenset((502, 504))
"""Statuses of a gateway that does not know what became of a request."""


def api(server: ServerConfig) -> Api:
    """Returns the specification of a server from its file or its copy; parses it again only if it has changed."""
    try:
        text = specification_text(_file(server))
    except OSError as error:
        raise CatalogError(f"{server.openapi}: cannot be read: {error.strerror}") from error
    # What the entry gives already is no argument of a tool.
    given = set(server.headers)
    given.update(name for name, _ in parse_qsl(urlsplit(server.url or "").query, keep_blank_values=True))
    return _parsed(text, server.openapi, frozenset(given))


@lru_cache(maxsize=4)
def _parsed(text: bytes, where: str, given: frozenset[str]) -> Api:
    return api_of(parse_specification(text, where), given=given)


class _Copy(NamedTuple):
    """What is known of the copy of a specification.

    ``when`` is its time, in UTC, ISO 8601, if it was not fetched now; ``error`` why it could not be.
    """

    when: str = ""
    error: str = ""


async def _copied(
    name: str, server: ServerConfig, limits: Limits, *, anew: bool, known: bool, retry: bool, patient: bool
) -> _Copy:
    """Fetches a specification at an address, unless that was done within ``limits.fresh`` seconds, or failed lately.

    Raises:
        UnreachableError: It cannot be fetched, and there is no copy.
    """
    if not is_address(server.openapi):
        return _Copy()
    when = ""
    with suppress(OSError):
        fetched = _file(server).stat().st_mtime
        when = datetime.fromtimestamp(fetched, UTC).isoformat(timespec="seconds")
        is_fresh = 0 <= time.time() - fetched < limits.fresh
        if known or (is_fresh and not anew):
            return _Copy(when)
    failure = None if anew else LastListings().failure(name, server)
    error = _error_without_asking(failure, known=known, retry=retry)
    if error is None:
        if not patient and (when or failure):
            # Something is known of it, so that nobody has to wait for it.
            limits = limits.model_copy(update={"start": min(limits.start, PATIENCE)})
        error = await _fetch_copy(name, server, limits)
    if not error:
        return _Copy()
    if not when:
        raise UnreachableError(error)
    return _Copy(when, error)


def _error_without_asking(failure: tuple[Listing, float] | None, *, known: bool, retry: bool) -> str | None:
    """Returns the error that is told because an address is not asked again yet; None if it is asked."""
    if not known and (failure is None or not failure[1] or retry):
        return None
    return failure[0].error if failure else UNHEARD.error


async def _fetch_copy(name: str, server: ServerConfig, limits: Limits) -> str:
    """Fetches and stores a specification; returns why that failed, without secrets, or an empty text."""
    store = LastListings()
    full = server.expanded(os.environ)
    began = time.monotonic()
    file = _file(server)
    try:
        content = await _fetched(name, full, limits)
        private_folder(file.parent)
        replace_bytes(file, content)
    except (UnreachableError, OSError) as error:
        why = of_server(full, named_in(server, os.environ), everything=True).text(str(error))
        store.fail(name, server, Listing(error=why, kind="start", seconds=time.monotonic() - began))
        return why
    store.recovered(name, server)
    return ""


def address_of(server: ServerConfig, found: Api) -> tuple[str, str]:
    """Returns the address to which calls are sent; empty if there is none, with the reason.

    It is the address in the catalog; that in the specification counts only if the specification is the user's own file
    or is on the same host.
    """
    if server.url:
        return server.url, ""
    remote = is_address(server.openapi)
    address = urljoin(server.openapi, found.server) if remote else found.server
    cure = 'name it as "url" in an entry of an mcp.json, beside "openapi"'
    if not is_address(address) or "{" in address:
        return "", f"the specification names no address of its server, so its tools can be found but not called: {cure}"
    if remote and origin(address) != origin(server.openapi):
        why = f"the specification is from another host than the server that it names, {address}"
        return "", f"{why}, so its tools can be found but not called: if you agree to that address, {cure}"
    return address.partition("?")[0], ""


def _file(server: ServerConfig) -> Path:
    """Returns the file of a specification: its own, or that of the copy of what is at its address."""
    if not is_address(server.openapi):
        return Path(server.openapi)
    return copy_of(server.openapi, server.headers)


async def _fetched(name: str, server: ServerConfig, limits: Limits) -> bytes:
    """Fetches the text at an address; headers are sent only to the host of the server itself."""
    if not name:
        # The user has named the address itself, so that it may also hold cards of servers.
        return await fetch_catalog(server.openapi, limits)
    is_same_host = server.url is not None and origin(server.url) == origin(server.openapi)
    return await fetch_specification(server.openapi, server.headers if is_same_host else {}, limits)


def load_apis(
    config: Mapping[str, ServerConfig],
    *,
    limits: Limits | None = None,
    pins: PinBook | None = None,
    agreed: Collection[str] = (),
    anew: bool = False,
    known: bool = False,
    retry: bool = False,
    heard: Callable[[], object] | None = None,
) -> SourceCatalog:
    """Reads specifications as agents; those at addresses are fetched unless that was done lately.

    The arguments are those of ``load_servers``. An entry with an empty name is named by the title of the specification.
    With ``anew``, definitions are also compared with the last time. A specification that cannot be fetched or read
    becomes a problem, and its last copy is used if there is one; without an entry, it is an error.
    """
    listings = LastListings() if anew else None
    owns = {name: own_limits(server, limits or Limits()) for name, server in config.items()}

    async def copied(name: str, server: ServerConfig) -> _Copy:
        patient = anew or heard is not None
        copy = await _copied(name, server, owns[name], anew=anew, known=known, retry=retry, patient=patient)
        if heard and is_address(server.openapi) and not copy.when:
            heard()
        return copy

    async def all_copied() -> list[_Copy | BaseException]:
        return await asyncio.gather(*starmap(copied, config.items()), return_exceptions=True)

    parts: list[SourceCatalog] = []
    for (name, server), copy in zip(config.items(), LOOP.blocking(all_copied()), strict=True):
        try:
            if isinstance(copy, BaseException):
                raise copy
            specification = _bounded_api(server, owns[name].tools) if name else _named_api(server, owns[name].tools)
        except CatalogError as error:
            # Without an entry, it is a source that the caller has named itself.
            if not name and not isinstance(error, UnreachableError):
                raise
            parts.append(SourceCatalog(problems=(_problem_of(name or server.openapi, error),)))
            continue
        if specification is None:
            part = SourceCatalog()
        else:
            agent_id = name or id_part(specification.title) or _NAMELESS
            part = _part(agent_id, server, specification, pins, name in agreed, listings)
        parts.append(_with_copy(part, copy, name or server.openapi))
    return join_parts(parts)


def _named_api(server: ServerConfig, most: int) -> Api | None:
    """Returns the specification of a source that the caller has named.

    None if there are cards at its address, whose servers ``graphs.sources`` has listed.
    """
    if not is_address(server.openapi):
        return _bounded_api(server, most)
    if read_cards(server.openapi) is not None:
        return None
    try:
        return _bounded_api(server, most)
    except CatalogError as error:
        raise CatalogError(f"{error}. There is no Server Card and no AI Catalog either") from error


def _bounded_api(server: ServerConfig, most: int) -> Api:
    """Returns the specification of a server; raises a CatalogError if it has more than ``most`` operations."""
    specification = api(server)
    if specification.size > most:
        many = f"it has {specification.size:,} operations, and no more than {most:,} are taken"
        raise CatalogError(f"{server.openapi}: {many}: raise its limit 'tools' if you want all of them")
    return specification


def _problem_of(source: str, error: CatalogError) -> Problem:
    kind: str = "malformed"
    if str(error) == UNHEARD.error:
        kind = UNHEARD.kind
    elif isinstance(error, UnreachableError):
        kind = "start"
    return Problem(source, kind, str(error))


def _with_copy(part: SourceCatalog, copy: _Copy, source: str) -> SourceCatalog:
    """Adds to a catalog that its specification is a copy: a problem if it could not be fetched, and its time."""
    if copy.error:
        late = Problem(source, "start", f"{copy.error}\nThe copy of {copy.when} is used")
        part = replace(part, problems=(late, *part.problems))
    if not copy.when:
        return part
    times = {agent.id: copy.when for agent in part.agents}
    return replace(part, down=times) if copy.error else replace(part, remembered=times)


def _part(
    name: str, server: ServerConfig, found: Api, pins: PinBook | None, agreed: bool, listings: LastListings | None
) -> SourceCatalog:
    address, why = address_of(server, found)
    located = server.model_copy(update={"url": address or None})
    tagged = {f"{name}-{tag}" if tag else name: located.model_copy(update={"tag": tag}) for tag in found.agents}
    config = with_trust(tagged)  # a person believes the parts of a specification, not the entry
    answers = {agent: listing_of(found, config[agent].tag) for agent in config}
    if pins:
        _pin_new_tags(name, config, pins)
    # Consent covers an address only if the entry names it.
    consented = tuple(config) if agreed and located.url else ()
    part = read_listings(config, answers, pins=pins, agreed=consented, listings=listings)
    problems = [Problem(name, NOT_CALLABLE, why)] if why else []
    problems += [Problem(name, "malformed", message) for message in found.problems]
    problems += unknown_names(name, server, [entry for agent in found.agents.values() for entry in agent.entries])
    return replace(part, connections=part.connections if address else {}, problems=(*problems, *part.problems))


def listing_of(found: Api, tag: str) -> Listing:
    """Returns what a specification says about one of its agents; empty if it no longer has this tag."""
    agent = found.agents.get(tag)
    if agent is None:
        return Listing()
    return Listing(tools=agent.entries, name=agent.name, description=agent.description)


def _pin_new_tags(name: str, config: Mapping[str, ServerConfig], pins: PinBook) -> None:
    """Pins the new tags of a known specification without their tools, which a person then has to accept."""
    known = pins.servers()
    if any(agent == name or agent.startswith(f"{name}-") for agent in known if known[agent].command.get("openapi")):
        about = {"name": "", "description": "", "instructions": ""}
        pins.admit({agent: Listed(server, about, ()) for agent, server in config.items() if agent not in known})


class ApiSession(Session):
    """A session for an API: the specification defines its tools when they are listed, and how they are called."""

    _entries: Mapping[str, Any] = {}

    async def listing(self) -> Listing:
        """Returns the operations of the tag; raises a ``Fault`` if the specification can no longer be read."""
        try:
            # In a thread: a specification that has changed is parsed again.
            listing = listing_of(await asyncio.to_thread(api, self.server), self.server.tag)
        except CatalogError as error:
            raise Fault("start", str(error), effect="none") from error
        self._entries = {entry["name"]: entry for entry in listing.tools}
        return listing

    async def _live(self) -> Fault | None:
        self._faults.child = child = ChildProcess(self.limits, self._over)
        more = {"auth": self._auth(), "timeout": httpx2.Timeout(None, connect=self.limits.start)}
        make = partial(BoundedHttpClient, "openapi", self.limits.message, partial(setattr, child, "fault"), **more)
        # In a thread: certificates are read.
        async with await asyncio.to_thread(make, headers=self._expanded.headers) as client:
            self._client.set_result(client)
            await self._stop.wait()
        return None

    async def _exchange(
        self, client: httpx2.AsyncClient, method: str, params: Mapping[str, Any], progress: Heard | None
    ) -> dict[str, Any]:
        entry = self._entries.get(params["name"])
        if method != "tools/call" or entry is None:
            raise Fault("refused", "its specification no longer has this operation", effect="none")
        call = HttpCall(**entry["_meta"][META])
        request = api_request(call, base := self._expanded.url or "", params["arguments"])
        if not is_address(base):
            raise Fault("refused", "its 'url' is not an address with http:// or https://: correct it", effect="none")
        if origin(request.url) != origin(base):
            raise Fault("refused", "the path of the operation leads to another host", effect="none")
        more: Any = {"headers": request.headers, "content": request.content, "files": request.parts}
        try:
            made = client.build_request(request.method, request.url, **more)
            return _result(await followed(client, made, calls=True))
        except Fault as fault:
            if fault.kind == "too_large":
                self.retire()
            raise


def _result(response: httpx2.Response) -> dict[str, Any]:
    """Returns an answer in the form of the result of ``tools/call``."""
    status = status_of(response)
    if response.status_code in BUSY:
        raise busy(response)
    if response.status_code in _UNKNOWN:
        told = f"{status}: {response.text[:2_000]}; whether the call took effect is unknown"
        raise Fault("tool", told, effect="unknown")
    content = _content(response)
    if response.is_success:
        return content if content.get("content") or "structuredContent" in content else _said(status)
    if "structuredContent" in content:
        content = _said(json.dumps(content["structuredContent"], ensure_ascii=False))
    return {"isError": True, "content": [{"type": "text", "text": status}, *content.get("content", ())]}


def _content(response: httpx2.Response) -> dict[str, Any]:
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not response.content:
        return {}
    if is_json(media or "application/json"):
        try:
            found = response.json()
        except (ValueError, RecursionError):
            return _said(response.text)
        return {"structuredContent": found if isinstance(found, dict) else {"result": found}}
    if media.startswith("text/") or media.endswith(("/xml", "/yaml", "+xml", "+yaml")):
        return _said(response.text)
    kind = media.partition("/")[0]
    data = base64.b64encode(response.content).decode()
    return {"content": [{"type": kind if kind in ("image", "audio") else "file", "mimeType": media, "data": data}]}


def _said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
