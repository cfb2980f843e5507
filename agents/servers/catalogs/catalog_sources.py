"""Catalog sources that must be run: MCP servers, listed whenever they change, and Python objects to import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from callsheet.agents.calls.limits import Limits
from callsheet.agents.servers.catalogs.listings import LastListings, Listing, resources_of
from callsheet.agents.servers.catalogs.python_objects import read_objects
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.mcp_format import Difference, Problem, agent_from_listing
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import Loaded, SourceCatalog, joined
from callsheet.graphs.catalog.loading import load
from callsheet.graphs.catalog.model import Agent, Provenance
from callsheet.graphs.trust.changes import problems_of
from callsheet.graphs.trust.pin_book import PinBook
from callsheet.graphs.trust.pins import Admitted, Listed, digests, everything

_STORE = LastListings()
_BY_AGENT = ("problems", "digests", "changes", "down", "resources", "remembered")
"""Details of a catalog of which a new state of an agent replaces those of the agent."""


def load_servers(
    config: Mapping[str, ServerConfig],
    *,
    limits: Limits | None = None,
    pins: PinBook | None = None,
    agreed: Collection[str] = (),
    anew: bool = False,
) -> SourceCatalog:
    """Reads API specifications, and starts and lists MCP servers in parallel.

    Servers that answered recently (``Limits.fresh``) are not started. A server is asked anyway if it has no pin, if its
    entry has changed, or if a part of its last answer is quarantined; with ``anew``, all are.

    Args:
        config: The servers by agent id.
        limits: Limits for each server separately.
        pins: Accepted definitions of these servers; anything else is left out. If None, everything is accepted.
        agreed: Servers whose current command has consent.
        anew: Asks all servers.

    Returns:
        An agent for each server that answered. A server that is missing, hangs or crashes becomes a problem with its
        name; it keeps its last known tools, and the other servers are not affected.

    Raises:
        TrustError: The pins are not reliable.
        SettingsError: A limit of a server is invalid.
    """
    if apis := {name: server for name, server in config.items() if server.transport == "openapi"}:
        from callsheet.agents.servers.http_api import load_apis

        rest = {name: server for name, server in config.items() if name not in apis}
        loaders = [(load_apis, apis), *([(load_servers, rest)] if rest else [])]
        return joined([one(part, limits=limits, pins=pins, agreed=agreed, anew=anew) for one, part in loaders])
    pool, known = SessionPool(limits=limits), dict[str, Listing]()
    for name, server in config.items():
        for own in server.callsheet.tools.values():
            pool.limits.own(own)
        seconds = pool.limits.own(server.callsheet.limits).fresh
        if not anew and (answer := _STORE.last(name, server, within=seconds)):
            known[name] = answer
    if pins:
        pinned = pins.servers()
        listed = {name: _listed(config[name], answer) for name, answer in known.items() if name in pinned}
        admitted = pins.admit(listed, agreed=agreed)
        # A quarantined change may be over.
        known = {name: known[name] for name, one in admitted.items() if not any(c.quarantines for c in one.changes)}
    asked = pool.list_all({name: server for name, server in config.items() if name not in known})
    answers = {name: known.get(name) or asked[name] for name in config}
    return read_listings(config, answers, pins=pins, agreed=agreed)


@dataclass
class LiveServer:
    """A server whose tools are in a catalog, as in ``graphs.loaded.Live``.

    ``said`` is its last answer, ``terms`` are pins, consents and the store, as ``read_listings`` takes them.
    """

    agent_id: str
    server: ServerConfig
    said: Listing | None
    difference: Difference
    terms: Mapping[str, Any]

    def heard(self, answer: Listing) -> SourceCatalog | None:
        """As in ``graphs.loaded.Live``; ``TrustError``: the pins are not reliable."""
        if answer == self.said and not answer.error:
            if listings := self.terms["listings"]:
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
        last = listings.last(name, config[name]) if listings and not answer.when else None
        if answer.error:
            kept = f"\nIts last known tools are kept, as of {last.when}" if last else ""
            problems.append(Problem(name, answer.kind, f"{answer.error}{kept}"))
        elif listings and not answer.when:
            differences[name] = Difference.of(last.tools if last else (), answer.tools)
            listings.keep(name, config[name], answer)
        if said := (last if answer.error else answer):
            used[name] = said
    listed = {name: _listed(config[name], said) for name, said in used.items()}
    admitted = pins.admit(listed, agreed=agreed) if pins else {name: everything(said) for name, said in listed.items()}
    parts = [SourceCatalog(problems=tuple(problems))]
    for name, accepted in admitted.items():
        answer, difference = answers[name], differences.get(name, Difference())
        terms = {"pins": pins, "agreed": (name,) if name in agreed else (), "listings": listings}
        live = LiveServer(name, config[name], None if answer.error else answer, difference, terms)
        times = {"down" if answer.error else "remembered": {name: used[name].when}} if used[name].when else {}
        parts.append(replace(_of_server(name, config[name], accepted, used[name]), live={name: live}, **times))
    return joined(parts)


def with_agent(loaded: Loaded, agent_id: str, part: SourceCatalog) -> Loaded:
    """A catalog with a new state of one agent; ``CatalogError``: the new catalog is inconsistent."""
    before = loaded.part
    agents = {agent.id: agent for agent in before.agents}
    agents |= {agent.id: _with_inferred(agent, agents.get(agent_id)) for agent in part.agents}
    details = {
        name: _without(agent_id, name, value) if name in _BY_AGENT else value for name, value in before.details.items()
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


def _without(agent_id: str, name: str, details: Any) -> Any:
    if isinstance(details, tuple):
        return tuple(item for item in details if item.agent != agent_id)
    if name == "digests":
        return {tool_id: one for tool_id, one in details.items() if not tool_id.startswith(f"{agent_id}/")}
    return {key: one for key, one in details.items() if key != agent_id}


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


def load_reference(reference: str) -> SourceCatalog:
    """Imports ``module:object`` and reads the object as a catalog, in any form that ``load_objects`` accepts.

    An agent without a name gets the object's name.

    Raises:
        CatalogError: The module cannot be imported or has no such object, or the object has another type.
    """
    module, _, path = reference.partition(":")
    if not module or not path:
        raise CatalogError(f"{reference!r} is not a reference: write module:object")
    return read_objects(_found(_imported(module), path, reference), path.rsplit(".", 1)[-1], reference)


def _imported(name: str) -> Any:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise CatalogError(f"there is no module {error.name!r}: correct the name or install it") from error
        raise CatalogError(f"module {name!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:  # importing runs foreign code, which may raise anything
        raise CatalogError(f"module {name!r} fails at import: {type(error).__name__}: {error}") from error


def _found(module: Any, path: str, reference: str) -> Any:
    found = module
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            near = get_close_matches(name, dir(found), n=3)
            hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
            raise CatalogError(f"{reference}: there is no {name!r}{hint}") from None
    return found
