"""MCP servers as agents of a catalog, read once and again whenever they change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from callsheet.agents.servers.catalogs.listings import LastKnown, LastListings, Listing
from callsheet.agents.servers.catalogs.server_resources import resources_of
from callsheet.graphs.catalog.formats.mcp_format import Difference, Problem, agent_from_listing
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import Loaded, SourceCatalog, joined
from callsheet.graphs.catalog.loading import load
from callsheet.graphs.catalog.model import Provenance
from callsheet.graphs.trust.changes import problems_of
from callsheet.graphs.trust.pins import Admitted, Listed, PinBook, digests, everything


class LiveServer:
    """A server whose tools are in a catalog."""

    def __init__(
        self,
        agent_id: str,
        server: ServerConfig,
        said: Listing | None,
        *,
        pins: PinBook | None,
        agreed: bool,
        listings: LastListings,
        difference: Difference,
    ) -> None:
        self._agent_id, self._server, self._pins, self._listings = agent_id, server, pins, listings
        self._agreed = (agent_id,) if agreed else ()
        self._said = said and _said(said)
        self.difference = difference

    def heard(self, answer: Listing) -> SourceCatalog | None:
        """As in ``graphs.loaded.Live``.

        Raises:
            TrustError: The pins are not reliable.
        """
        if (said := _said(answer)) == self._said and not answer.error:
            self._listings.keep(self._agent_id, self._server, answer)
            return None
        part = read_listings(
            {self._agent_id: self._server}, {self._agent_id: answer}, pins=self._pins, agreed=self._agreed,
            listings=self._listings,
        )  # fmt: skip
        self._said = said
        return part


def read_listings(
    config: Mapping[str, ServerConfig],
    answers: Mapping[str, Listing],
    *,
    pins: PinBook | None = None,
    agreed: Collection[str] = (),
    listings: LastListings | None = None,
    remembered: Mapping[str, str] | None = None,
) -> SourceCatalog:
    """The agents of servers from their answers; for a server without an answer, from its last known one.

    Args:
        config: The servers by agent id.
        answers: Their answers, errors included.
        pins: Accepted definitions; anything else is left out. If None, everything is accepted.
        agreed: Servers whose current command has consent.
        listings: The store of last answers.
        remembered: Servers whose answer comes from that store, with its time.

    Raises:
        TrustError: The pins are not reliable.
    """
    listings, remembered = listings or LastListings(), remembered or {}
    down = {name: listings.last(name, config[name]) for name, answer in answers.items() if answer.error}
    differences: dict[str, Difference] = {}
    for name, answer in answers.items():
        if not answer.error and name not in remembered:
            last = listings.last(name, config[name])
            differences[name] = Difference.of(last.listing.tools if last else (), answer.tools)
            listings.keep(name, config[name], answer)
    listed = {name: _listed(config[name], answer) for name, answer in answers.items() if not answer.error}
    listed |= {name: _listed(config[name], known.listing) for name, known in down.items() if known}
    admitted = pins.admit(listed, agreed=agreed) if pins else {name: everything(said) for name, said in listed.items()}
    parts = [SourceCatalog(problems=tuple(_lost(name, answers[name], known) for name, known in down.items()))]
    for name, said in admitted.items():
        answer, known = answers[name], down.get(name)
        live = LiveServer(
            name, config[name], None if known else answer, pins=pins, agreed=name in agreed, listings=listings,
            difference=differences.get(name, Difference()),
        )  # fmt: skip
        part = _of_server(name, config[name], said, known.listing if known else answer)
        parts.append(replace(part, live={name: live}, down={name: known.when} if known else {}))
    return replace(joined(parts), remembered=remembered)


def remembered_answers(
    config: Mapping[str, ServerConfig],
    last: Mapping[str, LastKnown],
    *,
    pins: PinBook | None = None,
    agreed: Collection[str] = (),
) -> dict[str, LastKnown]:
    """The last answers that can be used without asking their servers again.

    A server without a pin is asked, and so is one with a quarantined change, which may be over.

    Raises:
        TrustError: The pins are not reliable.
    """
    if pins is None:
        return dict(last)
    pinned = pins.servers()
    listed = {name: _listed(config[name], known.listing) for name, known in last.items() if name in pinned}
    admitted = pins.admit(listed, agreed=agreed)
    return {name: last[name] for name, said in admitted.items() if not any(c.quarantines for c in said.changes)}


def with_agent(loaded: Loaded, agent_id: str, part: SourceCatalog) -> Loaded:
    """A catalog with a new state of one agent.

    Raises:
        CatalogError: The new catalog is inconsistent.
    """
    before = loaded.part
    old = loaded.catalog.by_id.get(agent_id)
    known = {tool.name: tool.depends_on for tool in old.tools} if old else {}
    agents = {agent.id: agent for agent in before.agents}
    for agent in part.agents:
        # Dependencies that were inferred or reviewed do not come from the server.
        tools = (
            tool.model_copy(
                update={
                    "depends_on": (
                        *tool.depends_on,
                        *(edge for edge in known.get(tool.name, ()) if edge.provenance is not Provenance.DECLARED),
                    )
                }
            )
            for tool in agent.tools
        )
        agents[agent.id] = agent.model_copy(update={"tools": tuple(tools)})
    own = f"{agent_id}/"
    whole = replace(
        before,
        agents=tuple(agents.values()),
        connections={**before.connections, **part.connections},
        problems=(*(p for p in before.problems if p.agent != agent_id), *part.problems),
        digests={**{k: v for k, v in before.digests.items() if not k.startswith(own)}, **part.digests},
        changes=(*(c for c in before.changes if c.agent != agent_id), *part.changes),
        live={**before.live, **part.live},
        down={**{k: v for k, v in before.down.items() if k != agent_id}, **part.down},
        resources={**{k: v for k, v in before.resources.items() if k != agent_id}, **part.resources},
        remembered={k: v for k, v in before.remembered.items() if k != agent_id},
    )
    return replace(load(whole, policy=loaded.policy), label=loaded.label)


def _lost(agent_id: str, answer: Listing, known: LastKnown | None) -> Problem:
    kept = f"\nIts last known tools are kept, as of {known.when}" if known else ""
    return Problem(agent_id, answer.kind, f"{answer.error}{kept}")


def _listed(server: ServerConfig, listing: Listing) -> Listed:
    about = {"name": listing.name, "description": listing.description, "instructions": listing.instructions}
    return Listed(server, about, listing.tools)


def _of_server(agent_id: str, server: ServerConfig, said: Admitted, listing: Listing) -> SourceCatalog:
    about = {**said.about, "description": server.description} if server.description else said.about
    agent, malformed = agent_from_listing(agent_id, said.entries, **about)
    if server.tag:
        agent = agent.model_copy(update={"system": agent_id.removesuffix(f"-{server.tag}")})
    # They are not pinned, as they come and go; but nothing is read from a server whose command is not accepted.
    accepted = not any(change.quarantines and not change.tool for change in said.changes)
    resources, left_out = resources_of(agent_id, listing.resources if accepted else ())
    missing = (Problem(agent_id, "resources", listing.missing),) if listing.missing else ()
    sent = {**digests(listing.resources), **said.digests}
    return SourceCatalog(
        agents=(agent,),
        connections={agent.id: _connection(agent.id, server, said)},
        problems=(*malformed, *left_out, *missing, *problems_of(said.changes)),
        digests={tool.id: sent[tool.name] for tool in (*resources.tools, *agent.tools)},
        changes=said.changes,
        resources={agent.id: resources} if resources.tools else {},
    )


def _connection(agent_id: str, server: ServerConfig, said: Admitted) -> object:
    if server.transport != "a2a":
        return server
    from callsheet.agents.servers.a2a.agent import connection

    return connection(agent_id, server, next(iter(said.digests.values()), None))


def _said(listing: Listing) -> tuple[object, ...]:
    """The parts of an answer that the catalog uses."""
    return (listing.tools, listing.resources, listing.missing, listing.name, listing.description, listing.instructions)
