"""Reads the servers that a domain, or an entry of a registry, names at an address: a catalog that somebody else writes.

Its document is fetched and copied by ``agents``. A server on the host of the document is used like one of an
``mcp.json``; one on another host needs consent of its own. No program is started, and nothing of the environment is
sent: a server that needs that is for ``callsheet add``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from callsheet.graphs.catalog.formats.card_entries import ways_of
from callsheet.graphs.catalog.formats.manifests import Problem
from callsheet.graphs.catalog.formats.server_cards import LARGEST_COPY, CardEntry, ServerCard, cards_in, shown_line
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.storage import cache_folder, yes_from_environment
from callsheet.graphs.text.addresses import of_this_machine, web_address
from callsheet.graphs.text.regex import linear
from callsheet.graphs.trust.consent import CONNECTS, Agreements, Start

NO_CONSENT = "consent"
"""The kind of the problem with a server to which nothing was sent because nobody has consented."""
_REFERENCE = linear(r"\$\{\w+\}")


@dataclass(frozen=True, slots=True)
class CardServers:
    """The servers that the cards at an address name.

    Attributes:
        servers: The servers by agent id.
        starts: What needs consent, by agent id: a connection to another host than that of the cards.
        problems: Why cards, and servers of cards, cannot be used.
    """

    servers: Mapping[str, ServerConfig]
    starts: Mapping[str, Start]
    problems: tuple[Problem, ...]


def copy_of(address: str, headers: Iterable[str] = ()) -> Path:
    """Returns the file for the copy of a document at an address, which was fetched with headers of these names."""
    key = "\n".join((address, *sorted(headers)))
    return cache_folder() / "specifications" / hashlib.sha256(key.encode()).hexdigest()[:32]


def read_cards(address: str) -> CardServers | None:
    """Returns the servers of the cards at an address, from its copy; None if there is no copy, or none of cards."""
    file = copy_of(address)
    try:
        content = file.read_bytes() if file.stat().st_size <= LARGEST_COPY else b""
    except OSError:
        return None
    try:
        entries = cards_in(content, address)
    except CatalogError as error:
        return CardServers({}, {}, (Problem(address, "malformed", str(error)),))
    return None if entries is None else _servers_of(entries, address)


def agreed_servers(found: CardServers, address: str, *, yes: bool) -> tuple[dict[str, ServerConfig], list[Problem]]:
    """Returns the servers that may be reached, and a problem for each that lacks consent; ``yes`` consents to all."""
    if yes or yes_from_environment():
        return dict(found.servers), []
    known = Agreements().known()
    agreed: dict[str, ServerConfig] = {}
    problems: list[Problem] = []
    for agent, server in found.servers.items():
        start = found.starts.get(agent)
        if start is None or start.digest in known:
            agreed[agent] = server
            continue
        why = f"{address} names a server on another host, {server.url}, to which nothing was sent"
        cure = f"to allow it, run `callsheet index --catalog {address}` in a terminal, or use --yes"
        problems.append(Problem(agent, NO_CONSENT, f"{why}: {cure}"))
    return agreed, problems


def _servers_of(entries: tuple[CardEntry, ...], address: str) -> CardServers:
    servers: dict[str, ServerConfig] = {}
    starts: dict[str, Start] = {}
    problems: list[Problem] = []
    for entry in entries:
        if entry.card is None:
            problems.append(Problem(shown_line(entry.name), "malformed", entry.error))
            continue
        agent = _agent_id(entry.card, servers)
        try:
            server = _server_of(entry.card, address)
            start = _start_of(agent, server, address)
        except CatalogError as error:
            problems.append(Problem(agent, "malformed", str(error)))
            continue
        servers[agent] = server
        if start is not None:
            starts[agent] = start
    return CardServers(servers, starts, tuple(problems))


def _agent_id(card: ServerCard, taken: Mapping[str, ServerConfig]) -> str:
    """Returns the last part of a card's name, or all of it if another card has the same."""
    short = card.short_name
    return card.name.replace("/", "-") if short in taken else short


def _server_of(card: ServerCard, address: str) -> ServerConfig:
    """Returns how the server of a card is reached, if that needs nothing of the user."""
    ways = ways_of(card, "")
    remotes = [way for way in ways.usable if way.kind == "remote"]
    for way in remotes:
        if not way.needs:
            fields = {**way.entry, "transport": way.entry["type"]}
            return ServerConfig(**fields)
    add = f"to add it to your own mcp.json, run `callsheet add {address}`"
    if remotes:
        names = ", ".join(need.what for need in remotes[0].needs)
        raise CatalogError(f"it needs values that are not sent to whoever writes a card ({names}): {add}")
    if ways.usable:
        raise CatalogError(f"it is a program of this machine ({ways.usable[0].kind}), which no card starts: {add}")
    raise CatalogError("; ".join(ways.refused) or "its card names no address")


def _start_of(agent: str, server: ServerConfig, address: str) -> Start | None:
    """Returns what needs consent before a server of a card is reached; None if it is on the same host.

    Raises:
        CatalogError: Its address is refused, whoever consents.
    """
    url = server.url or ""
    check_reach(url, address)
    return None if web_address(url) == web_address(address) else Start(agent, url, "", (), (), CONNECTS)


def check_reach(url: str, source: str) -> None:
    """Refuses an address in a card that no consent makes good: people would misread it, or it leads to their machine.

    Args:
        url: The address of a server, in which ``${NAME}`` may stand.
        source: The address from which the card is.

    Raises:
        CatalogError: It is refused; the message says why.
    """
    here = web_address(source)
    there = web_address(_REFERENCE.sub("x", url))
    if there is None:
        raise CatalogError(f"its address {shown_line(url)!r} is not plain: it has a user, or characters that mislead")
    if of_this_machine(there.host) and not (here and of_this_machine(here.host)):
        raise CatalogError(f"its address {url} is of this machine, although its card is not")
    if there.scheme != "https" and here is not None and here.scheme == "https":
        raise CatalogError(f"its address {url} is not https, although its card is")
