"""Looks a server up that somebody has published: in a registry (the MCP Registry's API, v0.1), or at an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.servers.catalogs.fetching import fetch_catalog, fetch_document
from callsheet.graphs.catalog.formats.manifests import parse_json
from callsheet.graphs.catalog.formats.server_cards import ServerCard, cards_in, shown_line
from callsheet.graphs.catalog.formats.server_config import is_address
from callsheet.graphs.errors import CatalogError, UnknownNameError, lookup

REGISTRY = "https://registry.modelcontextprotocol.io"
"""The address of the official registry."""
_OFFICIAL = "io.modelcontextprotocol.registry/official"
_MOST_FOUND = 20


@dataclass(frozen=True, slots=True)
class PublishedServer:
    """A server that somebody has published.

    Attributes:
        source: The address from which its card is.
        status: What the registry says about it: ``active``, ``deprecated`` ...; empty elsewhere.
        left_out: Why other cards at the address cannot be read, in one line each.
    """

    card: ServerCard
    source: str
    status: str = ""
    left_out: tuple[str, ...] = ()


async def published_server(name: str, registry: str, *, card: str = "") -> PublishedServer:
    """Returns the published server of a name, or at an address.

    Args:
        name: The full name of a server in the registry, or the address of a domain, a card or an AI Catalog.
        registry: The address of a registry.
        card: The name of the server, if an address has several.

    Raises:
        UnreachableError: The registry or the address does not answer.
        UnknownNameError: There is no such server; the message has similar ones.
        CatalogError: Its card is malformed.
    """
    if is_address(name):
        return await _at_address(name, card)
    if "/" not in name:
        raise await _similar(name, registry)
    address = f"{registry.rstrip('/')}/v0.1/servers/{quote(name, safe='')}/versions/latest"
    content = await fetch_document(address, Limits())
    if content is None:
        raise await _similar(name, registry)
    (entry,) = cards_in(content, address) or (None,)
    if entry is None or entry.card is None:
        raise CatalogError(f"{address}: the answer is not one of a registry")
    if entry.card.name != name:
        raise CatalogError(f"{address}: the registry answers with another server, {entry.card.name}")
    return PublishedServer(entry.card, registry, _status_of(parse_json(content, address)))


async def _at_address(address: str, name: str) -> PublishedServer:
    content = await fetch_catalog(address, Limits())
    entries = cards_in(content, address)
    if not entries:
        raise CatalogError(f"{address}: there is no Server Card, AI Catalog or entry of a registry")
    cards = {entry.card.name: entry.card for entry in entries if entry.card is not None}
    if not cards:
        raise CatalogError(f"{address}: {entries[0].error}")
    if not name and len(cards) > 1:
        raise CatalogError(f"{address} has {len(cards)} servers: choose one with --card: {', '.join(cards)}")
    card = lookup(cards, name, "server", f"cards of {address}") if name else next(iter(cards.values()))
    left_out = tuple(shown_line(f"{entry.name}: {entry.error}") for entry in entries if entry.card is None)
    return PublishedServer(card, address, left_out=left_out)


async def _similar(name: str, registry: str) -> UnknownNameError:
    """Returns the error for a name that the registry does not have, with those that contain it."""
    words = name.rpartition("/")[2] or name
    query = f"search={quote(words, safe='')}&version=latest&limit={_MOST_FOUND}"
    address = f"{registry.rstrip('/')}/v0.1/servers?{query}"
    content = await fetch_document(address, Limits())
    document = parse_json(content or b"{}", address)
    servers = document.get("servers") if isinstance(document, dict) else None
    names: list[str] = []
    for answer in servers if isinstance(servers, list) else ():
        match answer:
            case {"server": {"name": str() as found}} if shown_line(found) == found:
                names.append(found)
    told = f"{registry} has no server {shown_line(name)!r}"
    if names:
        told += "; these names contain it: " + ", ".join(dict.fromkeys(names[:_MOST_FOUND]))
    return UnknownNameError(told)


def _status_of(document: Mapping[str, object]) -> str:
    """Returns what an answer of a registry says about the state of a server."""
    match document:
        case {"_meta": dict() as meta}:
            about = meta.get(_OFFICIAL)
            status = about.get("status") if isinstance(about, dict) else None
            return shown_line(status) if isinstance(status, str) else ""
        case _:
            return ""
