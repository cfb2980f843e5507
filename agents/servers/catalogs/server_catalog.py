"""Makes agents of a catalog from MCP servers, and again whenever their tools change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from callsheet.agents.servers.catalogs.last_listings import LastListings
from callsheet.agents.servers.catalogs.listings import Listing, resources_of
from callsheet.graphs.catalog.formats.manifests import UNREAD, Difference, Problem, agent_from_listing, name_of
from callsheet.graphs.catalog.formats.served_skills import divided, skill_entries, skills_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.model import Agent, Provenance
from callsheet.graphs.errors import near_names
from callsheet.graphs.sources.loaded import Loaded, SourceCatalog, join_parts
from callsheet.graphs.sources.loading import load
from callsheet.graphs.trust.changes import problems_of
from callsheet.graphs.trust.pins import Admitted, Change, Listed, PinBook, digests, everything

_STORE = LastListings()
_BY_AGENT = ("problems", "digests", "changes", "down", "resources", "remembered", "served")
"""Details of a catalog of which a new state of an agent replaces those of the agent."""


_LATER = ("new", "suspect", "changed")
"""Kinds of changes that a server may list in the middle of a run."""


@dataclass
class LiveServer:
    """A server in a catalog whose tools may change while it runs.

    Attributes:
        said: The last answer of the server; None if it was an error.
        difference: What this answer changed.
        terms: Pins, consents and the store, as the arguments of ``read_listings``.
    """

    agent_id: str
    server: ServerConfig
    said: Listing | None
    difference: Difference
    terms: Mapping[str, Any]

    def heard(self, answer: Listing) -> SourceCatalog | None:
        """Returns the agent with its accepted tools after a new listing; None if the listing has not changed."""
        if answer == self.said and not answer.error:
            listings = self.terms["listings"]
            if listings and not answer.later:
                listings.keep(self.agent_id, self.server, answer)
            return None
        part = read_listings({self.agent_id: self.server}, {self.agent_id: answer}, **self.terms)
        self.said = answer
        return part

    def again(self) -> SourceCatalog:
        """Returns the agent with its accepted tools by the last answer, after a person has accepted something."""
        said = self.said or Listing(error="it has not answered", kind="start")
        return read_listings({self.agent_id: self.server}, {self.agent_id: said}, **self.terms)


def read_listings(
    config: Mapping[str, ServerConfig],
    answers: Mapping[str, Listing],
    *,
    pins: PinBook | None = None,
    agreed: Collection[str] = (),
    listings: LastListings | None = _STORE,
) -> SourceCatalog:
    """Makes the agents of servers from their answers; a server without an answer keeps its last known tools.

    Args:
        config: The servers by agent id.
        answers: Their answers, which may be errors.
        pins: Accepted definitions; anything else is left out. If None, everything is accepted.
        agreed: Servers whose current command has consent.
        listings: Where answers are stored, and compared with the last ones; None for neither.
    """
    used: dict[str, Listing] = {}
    differences: dict[str, Difference] = {}
    problems: list[Problem] = []
    for name, answer in answers.items():
        listing, differences[name] = _stored(name, config[name], answer, listings)
        if listing:
            used[name] = listing
        if answer.error:
            note = f"\nIts last known tools are kept, as of {listing.when}" if listing else ""
            problems.append(Problem(name, answer.kind, f"{answer.error}{note}"))

    listed = {name: listed_by(config[name], listing) for name, listing in used.items()}
    admitted = pins.admit(listed, agreed=agreed) if pins else {name: everything(one) for name, one in listed.items()}
    parts = [SourceCatalog(problems=tuple(problems))]
    for name, admission in admitted.items():
        terms: dict[str, Any] = {
            "pins": pins,
            "agreed": (name,) if name in agreed else (),
            "listings": listings,
        }
        said = None if answers[name].error else answers[name]
        live = LiveServer(name, config[name], said, differences[name], terms)
        parts.append(_live_part(live, admission, used[name]))
    return join_parts(parts)


def _stored(
    name: str, server: ServerConfig, answer: Listing, listings: LastListings | None
) -> tuple[Listing | None, Difference]:
    """Stores a new answer or failure; returns the listing to use, if any, and what changed since the last one."""
    if listings is None:
        return (None if answer.error else answer), Difference()
    is_new = not answer.when
    if answer.error:
        last = listings.last(name, server)
        if is_new:
            listings.fail(name, server, answer)
        return last, Difference()
    if not is_new:
        return answer, Difference()
    last = listings.last(name, server)
    if not answer.later:  # another session begins with what this one began with
        listings.keep(name, server, answer)
    return answer, Difference.of(last.tools if last else (), answer.tools)


def _live_part(live: LiveServer, admission: Admitted, listing: Listing) -> SourceCatalog:
    """Makes the catalog of one server from what is admitted of a listing."""
    name = live.agent_id
    pins = live.terms["pins"]
    listings = live.terms["listings"]
    if pins and listings:
        changes = _with_later(name, live.server, listing, admission.changes, pins, listings)
        admission = replace(admission, changes=changes)
    part = replace(_of_server(name, live.server, admission, listing), live={name: live})
    if not listing.when:
        return part
    # The listing is a stored one: the server is down, or was not asked.
    when = {name: listing.when}
    return replace(part, down=when) if live.said is None else replace(part, remembered=when)


def _with_later(
    name: str, server: ServerConfig, said: Listing, changes: Sequence[Change], pins: PinBook, listings: LastListings
) -> tuple[Change, ...]:
    """Returns the changes of a server, with those that it listed in the middle of a run and nobody has accepted since.

    They are stored for the review, which starts the server anew: it does not list them at its start.
    """
    if said.later:
        marked = tuple(replace(change, later=True) if change.kind in _LATER else change for change in changes)
        if any(change.later for change in marked):
            listings.keep_later(name, server, said)
        return marked
    later = listings.later(name, server)
    if later is None:
        return tuple(changes)
    known = {change.id for change in changes}
    whole = pins.admit({name: listed_by(server, replace(said, tools=later.tools, skills=later.skills))})[name].changes
    waiting = [change for change in whole if change.kind in _LATER and change.id not in known]
    return (*changes, *(replace(change, later=True) for change in waiting))


def with_agent(loaded: Loaded, agent_id: str, part: SourceCatalog) -> Loaded:
    """Returns a catalog in which one agent has a new state.

    Raises:
        CatalogError: The new catalog is inconsistent.
    """
    before = loaded.part
    agents = {agent.id: agent for agent in before.agents}
    agents |= {agent.id: _with_inferred(agent, agents.get(agent_id)) for agent in part.agents}
    details = {
        name: _without(agent_id, value) if name in _BY_AGENT else value for name, value in before.details.items()
    }
    others = tuple(skill for skill in before.skills if skill.agent != agent_id)
    whole = join_parts([SourceCatalog(skills=others, **details), part])
    return replace(load(replace(whole, agents=tuple(agents.values())), policy=loaded.policy), label=loaded.label)


def _with_inferred(agent: Agent, before: Agent | None) -> Agent:
    """Adds to an agent the dependencies that do not come from its server: inferred or reviewed ones."""
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
    """Returns a listing in the form that pins compare, without the tools and skills that the user has switched off.

    Skills stand among the tools, by names that begin with ``skill:``, so they are accepted and changed like tools.
    """
    about = {"name": listing.name, "description": listing.description, "instructions": listing.instructions}
    tools = [entry for entry in listing.tools if server.offers(name_of(entry))]
    # A list of the tools that are switched on names no skills.
    skills = [entry for entry in skill_entries(listing.skills) if entry["name"] not in server.without]
    return Listed(server, about, [*tools, *skills])


def _of_server(agent_id: str, server: ServerConfig, said: Admitted, listing: Listing) -> SourceCatalog:
    """Makes the agent of a server from what is admitted of its listing, with its problems and its connection."""
    about = {**said.about, "description": server.description} if server.description else said.about
    tools, of_skills = divided(said.entries, listing.skills)
    agent, malformed = agent_from_listing(agent_id, tools, **about)
    agent = _with_always(agent, server.callsheet.always)
    # An entry of an API names tools of all its agents, which are one for each tag.
    unknown = () if server.openapi else unknown_names(agent_id, server, [*listing.tools, *listing.resources])
    skills, served, odd_skills = skills_of(agent_id, of_skills, listing.skills)
    if server.tag:
        agent = agent.model_copy(update={"system": agent_id.removesuffix(f"-{server.tag}")})
    # They are not pinned, as they come and go; but nothing is read from a server whose command is not accepted.
    accepted = not any(change.quarantines and not change.tool for change in said.changes)
    resources, left_out = resources_of(agent_id, listing.resources if accepted else ())
    missing = (Problem(agent_id, "listing", listing.missing),) if listing.missing else ()
    sent = {**digests(listing.resources), **said.digests}
    return SourceCatalog(
        agents=(agent,),
        skills=skills,
        connections={agent.id: _reached(agent_id, server, said)},
        problems=(*malformed, *unknown, *left_out, *odd_skills, *missing, *problems_of(said.changes)),
        digests={agent.id: {tool.name: sent[tool.name] for tool in (*resources.tools, *agent.tools)}},
        changes=said.changes,
        places={agent.id: said.place} if said.place else {},
        resources={agent.id: resources} if resources.tools else {},
        served={agent.id: served} if served else {},
    )


def _reached(agent_id: str, server: ServerConfig, said: Admitted) -> object:
    """Returns the connection for the calls of an agent."""
    if server.transport != "a2a":
        return server
    from callsheet.agents.servers.a2a.agent import connection

    return connection(agent_id, server, next(iter(said.digests.values()), None))


def _with_always(agent: Agent, names: Collection[str]) -> Agent:
    """Marks the tools of an agent that come with every other tool of it."""
    if not names:
        return agent
    tools = tuple(tool.model_copy(update={"always": tool.name in names}) for tool in agent.tools)
    return agent.model_copy(update={"tools": tools})


def unknown_names(agent_id: str, server: ServerConfig, entries: Iterable[object]) -> tuple[Problem, ...]:
    """Returns a problem for each name in the options of a server that is none of its tools, or is switched off."""
    known = {name_of(entry) for entry in entries if server.offers(name_of(entry))}
    own = server.callsheet
    named: Mapping[str, Iterable[str]] = {
        "always": own.always,
        "allow": own.allow,
        "reads": own.reads,
        "tools": own.tools,
    }
    problems = []
    for option, names in named.items():
        # What always comes is needed at once; any other tool may be listed later, in a run.
        kind = "malformed" if option == "always" else UNREAD
        for name in names:
            if name not in known:
                no_tool = f"which is none of its tools{near_names(name, known)}: correct the name"
                problems.append(Problem(agent_id, kind, f"{option!r} of its entry names {name!r}, {no_tool}"))
    return tuple(problems)
