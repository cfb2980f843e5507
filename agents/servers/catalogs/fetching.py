"""Fetches the documents that are catalogs at an address: specifications of APIs, Server Cards, AI Catalogs.

Nothing is sent to another host than that of the address, and no redirect leads to one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

import httpx2

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Fault
from callsheet.agents.safety.secrets import origin
from callsheet.agents.servers.catalogs.listings import PATIENCE
from callsheet.agents.servers.transport.http import BoundedHttpClient
from callsheet.agents.servers.transport.refusals import elsewhere, redirect_fault
from callsheet.graphs.catalog.formats.openapi_documents import LARGEST
from callsheet.graphs.catalog.formats.server_cards import (
    AI_CATALOG,
    CARD,
    LARGEST_CARD,
    LARGEST_DOCUMENT,
    is_card_document,
    linked_cards,
    with_linked_cards,
)
from callsheet.graphs.errors import CatalogError

_MOST_REDIRECTS = 5
_WELL_KNOWN = ("/.well-known/ai-catalog.json", "/.well-known/mcp/server-card.json")
"""Where a domain publishes its servers: by SEP-2127, and by its drafts, which many servers still follow."""
_ACCEPT = {"accept": f"{CARD}, {AI_CATALOG}, application/json, application/yaml, text/plain, */*;q=0.1"}


class UnreachableError(CatalogError):
    """Raised if a document cannot be fetched at the moment."""


def places_of(address: str) -> tuple[str, ...]:
    """Returns where the document of an address may be: for a domain, at its well-known places first."""
    parts = urlsplit(address)
    if parts.path.strip("/") or parts.query:
        return (address,)
    return (*(urljoin(address, place) for place in _WELL_KNOWN), address)


async def fetch_specification(address: str, headers: Mapping[str, str], limits: Limits) -> bytes:
    """Returns the text of a specification at an address.

    Raises:
        UnreachableError: It cannot be fetched in time.
    """
    return await _fetched(address, headers, limits, LARGEST)


async def fetch_document(address: str, limits: Limits) -> bytes | None:
    """Returns a small document at an address; None if there is none.

    Raises:
        UnreachableError: It cannot be fetched in time.
    """
    response = await _answer(address, _ACCEPT, limits, LARGEST_DOCUMENT)
    if response.status_code == 404:
        return None
    if response.status_code != 200:
        raise UnreachableError(f"{response.url}: answers with status {response.status_code}")
    return response.content


async def fetch_catalog(address: str, limits: Limits) -> bytes:
    """Returns the document of a catalog at an address: a specification, a card, or an AI Catalog with its cards.

    Raises:
        UnreachableError: It cannot be fetched in time.
    """
    *well_known, last = places_of(address)
    for place in well_known:
        # Whatever is wrong with the host, the address itself says it.
        with suppress(UnreachableError):
            content = await _card_document(place, limits)
            if content is not None:
                return content
    response = await _answer(last, _ACCEPT, limits, LARGEST)
    if response.status_code != 200 and last == address and "?" not in last:
        # The address may be that of an MCP server itself, which has its card beside it.
        content = await _card_document(f"{last.rstrip('/')}/server-card", limits)
        if content is not None:
            return content
    return await _with_cards(_content(response), last, limits)


async def _card_document(address: str, limits: Limits) -> bytes | None:
    """Returns a card, or an AI Catalog with its cards; None if there is none at the address."""
    content = await fetch_document(address, limits)
    if content is None or not is_card_document(content, address):
        return None
    return await _with_cards(content, address, limits)


async def _with_cards(content: bytes, where: str, limits: Limits) -> bytes:
    """Returns a document; an AI Catalog holds then the cards that it names."""
    links = linked_cards(content, where)
    if not links:
        return content
    patience = limits.model_copy(update={"start": min(limits.start, PATIENCE)})
    fetched = await asyncio.gather(*(_card_at(urljoin(where, link), where, patience) for link in links))
    return with_linked_cards(content, where, dict(zip(links, fetched, strict=True)))


async def _card_at(address: str, catalog: str, limits: Limits) -> bytes | str:
    """Returns a card that an AI Catalog names, or why it was not fetched."""
    try:
        if origin(address) != origin(catalog):
            return f"its card is on another host, to which nothing was sent: if you trust it, use --catalog {address}"
        return await _fetched(address, _ACCEPT, limits, LARGEST_CARD)
    except CatalogError as error:
        return str(error)


async def _fetched(address: str, headers: Mapping[str, str], limits: Limits, most: int) -> bytes:
    return _content(await _answer(address, headers, limits, most))


def _content(response: httpx2.Response) -> bytes:
    if response.status_code != 200:
        raise UnreachableError(f"{response.url}: answers with status {response.status_code}, not a specification")
    return response.content


async def _answer(address: str, headers: Mapping[str, str], limits: Limits, most: int) -> httpx2.Response:
    timeout = httpx2.Timeout(limits.list, connect=limits.start)
    try:
        async with (
            asyncio.timeout(limits.start),
            BoundedHttpClient("openapi", most, headers=headers, timeout=timeout) as client,
        ):
            return await followed(client, client.build_request("GET", address))
    except TimeoutError as error:
        raise UnreachableError(f"{address}: not fetched in time: raise its limit 'start'") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError, Fault) as error:
        what = error if isinstance(error, Fault) else f"{type(error).__name__}: {error}"
        raise UnreachableError(f"{address}: cannot be fetched: {what}") from error


async def followed(client: httpx2.AsyncClient, request: httpx2.Request, *, calls: bool = False) -> httpx2.Response:
    """Sends a request; redirects are followed on the same host only, and of ``calls`` on the same path only."""
    home = origin(str(request.url))
    for _ in range(_MOST_REDIRECTS):
        response = await client.send(request)
        if response.next_request is None:
            return response
        if origin(str(response.next_request.url)) != home:
            why = f"its server redirects to another host, {response.next_request.url.host}, to which nothing was sent"
            cure = "if you trust that host, write its address into the entry"
            raise Fault("refused", f"{why}: {cure}", effect="reported")
        where = elsewhere(response) if calls else None
        if where:
            raise redirect_fault(response, where)
        request = response.next_request
    raise Fault("protocol", f"its server answers with more than {_MOST_REDIRECTS} redirects", effect="reported")
