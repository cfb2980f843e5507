"""MCP servers as agents of a catalog, read once and again whenever they change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from callsheet.agents.servers.catalogs.listings import LastListings, Listing, resources_of
from callsheet.graphs.catalog.formats.manifests import Difference, Problem, agent_from_listing, name_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import Loaded, SourceCatalog, joined
from callsheet.graphs.catalog.loading import load
from callsheet.graphs.catalog.model import Agent, Provenance
from callsheet.graphs.trust.changes import problems_of
from callsheet.graphs.trust.pins import Admitted, Change, Listed, PinBook, digests, everything

_STORE = LastListings()
_BY_AGENT = ("problems", "digests", "changes", "down", "resources", "remembered")
"""Details of a catalog of which a new state of an agent replaces those of the agent."""


_LATER = ("new", "suspect", "changed")
"""Kinds of changes that a server may list in the middle of a run."""


@dataclass
class LiveServer:
    """A server whose tools are in a catalog and may change while it runs.

    ``said`` is its last answer, ``terms`` are pins, consents and the store, as ``read_listings`` takes them.
    """

    agent_id: str
    server: ServerConfig
    said: Listing | None
    difference: Difference
    terms: Mapping[str, Any]

    def heard(self, answer: Listing) -> SourceCatalog | None:
        """Its agent after a new listing, with the accepted tools; None if the listing is the same as before."""
        if answer == self.said and not answer.error:
            if (listings := self.terms["listings"]) and not answer.later:
                listings.keep(self.agent_id, self.server, answer)
            return None
        part = read_listings({self.agent_id: self.server}, {self.agent_id: answer}, **self.terms)
        self.said = answer
        return part


def read_listings(
    config: Mapping[str, ServerConfig],
    answers: Mapping[str, Listing],
    *,
    pins: PinBook | None = None,
    agreed: Collection[str] = (),
    listings: LastListings | None = _STORE,
) -> SourceCatalog:
    """The agents of servers from their answers; for a server without an answer, from its last known one.

    Arguments as ``load_servers``; ``answers`` has errors too. Without ``listings``, answers are neither stored nor
    compared.
    """
    used, differences, problems = dict[str, Listing](), dict[str, Difference](), list[Problem]()
    for name, answer in answers.items():
        last = listings.last(name, config[name]) if listings and (answer.error or not answer.when) else None
        if answer.error:
            kept = f"\nIts last known tools are kept, as of {last.when}" if last else ""
            problems.append(Problem(name, answer.kind, f"{answer.error}{kept}"))
            if listings and not answer.when:
                listings.fail(name, config[name], answer)
        elif listings and not answer.when:
            differences[name] = Difference.of(last.tools if last else (), answer.tools)
            if not answer.later:  # another session begins with what this one began with
                listings.keep(name, config[name], answer)
        if said := (last if answer.error else answer):
            used[name] = said
    listed = {name: listed_by(config[name], said) for name, said in used.items()}
    admitted = pins.admit(listed, agreed=agreed) if pins else {name: everything(said) for name, said in listed.items()}
    parts = [SourceCatalog(problems=tuple(problems))]
    for name, admission in admitted.items():
        accepted = admission
        if pins and listings:
            changes = _with_later(name, config[name], used[name], admission.changes, pins, listings)
            accepted = replace(admission, changes=changes)
        answer, difference = answers[name], differences.get(name, Difference())
        terms = {"pins": pins, "agreed": (name,) if name in agreed else (), "listings": listings}
        live = LiveServer(name, config[name], None if answer.error else answer, difference, terms)
        times: Any = {"down" if answer.error else "remembered": {name: used[name].when}} if used[name].when else {}
        parts.append(replace(_of_server(name, config[name], accepted, used[name]), live={name: live}, **times))
    return joined(parts)


def _with_later(
    name: str, server: ServerConfig, said: Listing, changes: Sequence[Change], pins: PinBook, listings: LastListings
) -> tuple[Change, ...]:
    """The changes of a server, with those that it has listed in the middle of a run and nobody has accepted since.

    Whoever looks at them later starts the server anew, which does not list them then.
    """
    if said.later:
        marked = tuple(replace(change, later=True) if change.kind in _LATER else change for change in changes)
        if any(change.later for change in marked):
            listings.keep_later(name, server, said)
        return marked
    if not (later := listings.later(name, server)):
        return tuple(changes)
    listed = listed_by(server, replace(said, tools=later))
    known = {change.id for change in changes}
    found = pins.admit({name: listed})[name].changes
    waiting = (change for change in found if change.kind in _LATER and change.id not in known)
    return (*changes, *(replace(change, later=True) for change in waiting))


def with_agent(loaded: Loaded, agent_id: str, part: SourceCatalog) -> Loaded:
    """A catalog with a new state of one agent; ``CatalogError``: the new catalog is inconsistent."""
    before = loaded.part
    agents = {agent.id: agent for agent in before.agents}
    agents |= {agent.id: _with_inferred(agent, agents.get(agent_id)) for agent in part.agents}
    details = {
        name: _without(agent_id, value) if name in _BY_AGENT else value for name, value in before.details.items()
    }
    whole = joined([SourceCatalog(skills=before.skills, **details), part])
    return replace(load(replace(whole, agents=tuple(agents.values())), policy=loaded.policy), label=loaded.label)


def _with_inferred(agent: Agent, before: Agent | None) -> Agent:
    """An agent with the dependencies that do not come from its server: inferred or reviewed."""
    known = {tool.name: tool.depends_on for tool in before.tools} if before else {}
    tools = []
    for tool in agent.tools:
        more = (edge for edge in known.get(tool.name, ()) if edge.provenance is not Provenance.DECLARED)
        tools.append(tool.model_copy(update={"depends_on": (*tool.depends_on, *more)}))
    return agent.model_copy(update={"tools": tuple(tools)})


def _without(agent_id: str, details: Any) -> Any:
    if isinstance(details, tuple):
        return tuple(item for item in details if item.agent != agent_id)
    return {key: one for key, one in details.items() if key != agent_id}


def listed_by(server: ServerConfig, listing: Listing) -> Listed:
    """An answer in the form that pins compare, without the tools that the user has switched off."""
    about = {"name": listing.name, "description": listing.description, "instructions": listing.instructions}
    return Listed(server, about, [entry for entry in listing.tools if server.offers(name_of(entry))])


def _of_server(agent_id: str, server: ServerConfig, said: Admitted, listing: Listing) -> SourceCatalog:
    about = {**said.about, "description": server.description} if server.description else said.about
    agent, malformed = agent_from_listing(agent_id, said.entries, **about)
    if server.tag:
        agent = agent.model_copy(update={"system": agent_id.removesuffix(f"-{server.tag}")})
    # They are not pinned, as they come and go; but nothing is read from a server whose command is not accepted.
    accepted = not any(change.quarantines and not change.tool for change in said.changes)
    resources, left_out = resources_of(agent_id, listing.resources if accepted else ())
    missing = (Problem(agent_id, "listing", listing.missing),) if listing.missing else ()
    sent = {**digests(listing.resources), **said.digests}
    reached: object = server
    if server.transport == "a2a":
        from callsheet.agents.servers.a2a.agent import connection

        reached = connection(agent_id, server, next(iter(said.digests.values()), None))
    return SourceCatalog(
        agents=(agent,),
        connections={agent.id: reached},
        problems=(*malformed, *left_out, *missing, *problems_of(said.changes)),
        digests={agent.id: {tool.name: sent[tool.name] for tool in (*resources.tools, *agent.tools)}},
        changes=said.changes,
        places={agent.id: said.place} if said.place else {},
        resources={agent.id: resources} if resources.tools else {},
    )
