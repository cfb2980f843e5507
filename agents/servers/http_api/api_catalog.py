"""APIs read into a catalog, by the pins that hold for servers."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace

from callsheet.agents.servers.catalogs.listings import LastKnown, LastListings, Listing
from callsheet.agents.servers.catalogs.server_catalog import read_listings
from callsheet.agents.servers.http_api.specifications import UnreachableError, address_of, api, copied
from callsheet.agents.servers.limits import Limits
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.mcp_format import NOT_CALLABLE, Problem
from callsheet.graphs.catalog.formats.openapi_operations import Api, id_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import Part, joined
from callsheet.graphs.trust.pin_book import PinBook
from callsheet.graphs.trust.pins import Listed

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
) -> Part:
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
    parts: list[Part] = []
    for name, server in config.items():
        own = (limits or Limits()).own(server.callsheet.limits)
        for limit in server.callsheet.tools.values():
            own.own(limit)
        parts.append(_part(name, server, own, pins=pins, agreed=name in agreed, anew=anew))
    return joined(parts)


def _part(name: str, server: ServerConfig, limits: Limits, *, pins: PinBook | None, agreed: bool, anew: bool) -> Part:
    label = name or server.openapi
    try:
        copy = copied(server, limits, os.environ, anew=anew)
        found = api(server)
    except UnreachableError as error:
        return Part(problems=(Problem(label, "start", str(error)),))
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
) -> Part:
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
