"""Loads catalogs that must be run: lists MCP servers, and imports Python objects and toolkits."""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, BaseToolkit
from pydantic import ValidationError

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.servers.catalogs.last_listings import LastListings
from callsheet.agents.servers.catalogs.listings import UNHEARD, Listing, own_limits
from callsheet.agents.servers.catalogs.python_objects import call_foreign, doc_of, entry_of, read_objects, usable_tools
from callsheet.agents.servers.catalogs.server_catalog import listed_by, read_listings
from callsheet.agents.servers.in_process import InProcess, in_thread
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.formats.manifests import Problem
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.errors import CallsheetError, CatalogError, SettingsError, near_names
from callsheet.graphs.sources.loaded import SourceCatalog, join_parts
from callsheet.graphs.text.messages import error_lines
from callsheet.graphs.text.regex import linear
from callsheet.graphs.trust.pins import PinBook

_PLACE = linear(r"(^|_)(path|file|dir|directory|folder)$")
"""Names of arguments that are paths."""


def load_servers(
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
    """Reads API specifications, imports toolkits, and starts and lists MCP servers in parallel.

    Servers that answered recently (``Limits.fresh``) are not started. A server is asked anyway if it has no pin, if its
    entry has changed, or if a part of its last answer is quarantined. One that failed is not asked again for a while.
    One that has failed, or has answered before, has eight seconds. A server that is missing, hangs or crashes becomes a
    problem with its name, and keeps its last known tools.

    Args:
        config: The servers by agent id.
        limits: Limits for each server separately.
        pins: Accepted definitions of these servers; anything else is left out. If None, everything is accepted.
        agreed: Servers whose current command has consent.
        anew: Asks all servers.
        known: Asks no server: the last known answers are used, whatever their age.
        retry: Asks also those that failed a short time ago: a person waits, and may have repaired them.
        heard: Called when another answer is stored. With it, the caller can wait: every server has its full time limit.

    Raises:
        TrustError: The pins are not reliable.
    """
    usable, problems = _with_valid_limits(config, limits)
    apis: dict[str, ServerConfig] = {}
    toolkits: dict[str, ServerConfig] = {}
    servers: dict[str, ServerConfig] = {}
    for name, server in usable.items():
        kind = {"openapi": apis, "toolkit": toolkits}.get(server.transport, servers)
        kind[name] = server
    how: Any = {
        "limits": limits,
        "pins": pins,
        "agreed": agreed,
        "anew": anew,
        "known": known,
        "retry": retry,
        "heard": heard,
    }
    specified: list[Future[SourceCatalog]] = []
    if apis:
        from callsheet.agents.servers.http_api import load_apis

        # Beside the servers: a specification may take its time too.
        specified.append(in_thread(lambda: load_apis(apis, **how)))
    parts = [SourceCatalog(problems=tuple(problems))]
    if servers:
        parts.append(_list_servers(servers, **how))
    if toolkits:
        parts.append(_load_toolkits(toolkits, pins, agreed))
    return join_parts([*(future.result() for future in specified), *parts])


def _with_valid_limits(
    config: Mapping[str, ServerConfig], limits: Limits | None
) -> tuple[dict[str, ServerConfig], list[Problem]]:
    """Returns the servers whose own limits are valid, and a problem for each other one, which is left out."""
    usable: dict[str, ServerConfig] = {}
    problems: list[Problem] = []
    common = limits or Limits()
    for name, server in config.items():
        try:
            own_limits(server, common)
        except SettingsError as error:
            problems.append(Problem(name, "malformed", str(error)))
        else:
            usable[name] = server
    return usable, problems


def _list_servers(
    config: Mapping[str, ServerConfig],
    *,
    limits: Limits | None,
    pins: PinBook | None,
    agreed: Collection[str],
    anew: bool,
    known: bool,
    retry: bool,
    heard: Callable[[], object] | None,
) -> SourceCatalog:
    """Lists MCP servers, as ``load_servers`` describes it."""
    pool = SessionPool(limits=limits)
    store = LastListings()
    fresh = {name: own_limits(server, pool.limits).fresh for name, server in config.items()}
    answers: dict[str, Listing] = {}
    for name, server in config.items():
        answer = _stored_answer(store, name, server, within=fresh[name], anew=anew, known=known, retry=retry)
        if answer:
            answers[name] = answer
    if pins and not known:
        answers = _undoubted(config, answers, pins, agreed)

    unanswered = {name: server for name, server in config.items() if name not in answers}
    hurried: list[str] = []
    if not anew and not heard:
        # Something is known of these, so that nobody has to wait for their answer.
        hurried = [name for name, one in unanswered.items() if _is_hurried(store, name, one, retry=retry)]

    def store_answer(name: str, answer: Listing) -> None:
        if heard and not answer.error:
            store.keep(name, config[name], answer)
            heard()

    answers |= pool.list_all(unanswered, hurried=hurried, heard=store_answer)
    return read_listings(config, {name: answers[name] for name in config}, pins=pins, agreed=agreed)


def _stored_answer(
    store: LastListings, name: str, server: ServerConfig, *, within: float, anew: bool, known: bool, retry: bool
) -> Listing | None:
    """Returns what is used instead of an answer of the server: a failure or its last answer; None if it is asked.

    With ``known``, the age of either does not matter, and there is always something.
    """
    if not anew:
        failure = store.failure(name, server)
        if failure and (known or (failure[1] and not retry)):
            return failure[0]
        last = None if failure and retry else store.last(name, server, within=None if known else within)
        if last:
            return last
    return UNHEARD if known else None


def _is_hurried(store: LastListings, name: str, server: ServerConfig, *, retry: bool) -> bool:
    """Whether a server has little time: something is known of it, and no person waits for one that may be repaired."""
    failure = store.failure(name, server)
    if failure and retry:
        return failure[0].kind == "timeout"
    return bool(failure or store.last(name, server))


def _undoubted(
    config: Mapping[str, ServerConfig], answers: Mapping[str, Listing], pins: PinBook, agreed: Collection[str]
) -> dict[str, Listing]:
    """Returns the stored answers, without those of servers that have no pins, or of which a part is quarantined."""
    pinned = pins.servers()
    listed = {name: listed_by(config[name], one) for name, one in answers.items() if not one.error}
    admitted = pins.admit({name: one for name, one in listed.items() if name in pinned}, agreed=agreed)
    sure = {name for name, one in admitted.items() if not any(change.quarantines for change in one.changes)}
    return {name: one for name, one in answers.items() if one.error or name in sure}


def _load_toolkits(config: Mapping[str, ServerConfig], pins: PinBook | None, agreed: Collection[str]) -> SourceCatalog:
    """Imports LangChain toolkits; their tools run in this process, and are pinned as those of servers are.

    A toolkit that cannot be imported or made is a problem with its name.
    """
    answers: dict[str, Listing] = {}
    tools: dict[str, Sequence[BaseTool]] = {}
    problems: list[Problem] = []
    for name, server in config.items():
        try:
            toolkit = _toolkit(server)
            tools[name], left_out = usable_tools(name, call_foreign(toolkit.get_tools, name), server.command or "")
            problems += left_out
            answers[name] = Listing(tools=tuple(map(entry_of, tools[name])), description=doc_of(toolkit))
        except CallsheetError as error:
            answers[name] = Listing(error=str(error), kind="start")
    part = read_listings(config, answers, pins=pins, agreed=agreed)
    accepted = {tool.id for agent in part.agents for tool in agent.tools}
    connections = {
        name: InProcess({t.name: t for t in tools.get(name, ()) if f"{name}/{t.name}" in accepted}, server.callsheet)
        for name, server in config.items()
    }
    return replace(part, connections=connections, problems=(*problems, *part.problems))


def _toolkit(server: ServerConfig) -> Any:
    """Makes the toolkit of a configuration; raises a CatalogError if that fails."""
    reference = server.command or ""
    made = _toolkit_class(reference)
    arguments = _toolkit_arguments(server, made)
    try:
        return made(**arguments)
    except ValidationError as error:
        raise CatalogError(f"{reference} does not take these arguments: {error_lines(error)}") from error
    except Exception as error:  # foreign code may raise anything
        raise CatalogError(f"{reference} cannot be made: {type(error).__name__}: {error}") from error


def _toolkit_class(reference: str) -> type[BaseToolkit]:
    module, _, name = reference.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # langchain-community's, of itself
        member: Any = _found(_imported(module), name, reference)
    if not (isinstance(member, type) and issubclass(member, BaseToolkit)):
        raise CatalogError(f"{reference} is not a LangChain toolkit, which is a class with BaseToolkit as its base")
    return member


def _toolkit_arguments(server: ServerConfig, made: type[BaseToolkit]) -> dict[str, Any]:
    """Reads the arguments of a toolkit: variables are expanded, relative paths start at the folder of the catalog."""
    arguments: dict[str, Any] = json.loads(server.args[0])
    known = set(made.model_fields)
    known.update(field.alias for field in made.model_fields.values() if field.alias)
    for key in arguments:
        if key not in known:
            raise CatalogError(f"{server.command} has no argument {key!r}{near_names(key, known)}")
    texts = {key: value for key, value in arguments.items() if isinstance(value, str)}
    expanded = server.model_copy(update={"args": tuple(texts.values())}).expanded(os.environ).args
    for key, text in zip(texts, expanded, strict=True):
        if _PLACE.search(key):
            arguments[key] = str(Path(server.cwd or "", Path(text).expanduser()))
        else:
            arguments[key] = text
    return arguments


def load_reference(reference: str) -> SourceCatalog:
    """Imports ``module:object`` as a catalog, as ``load_objects`` does; the object names an agent without a name."""
    module, _, path = reference.partition(":")
    if not module or not path:
        raise CatalogError(f"{reference!r} is not a reference: write module:object")
    part = read_objects(_found(_imported(module), path, reference), path.rsplit(".", 1)[-1], reference)
    # A catalog that is named, as on a command line, is not what a program passes.
    named: dict[str, Any] = {**part.connections}
    return replace(part, connections={name: replace(to, own=False) for name, to in named.items()})


def _imported(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise CatalogError(f"there is no module {error.name!r}: correct the name or install it") from error
        raise CatalogError(f"module {name!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:  # importing runs foreign code, which may raise anything
        raise CatalogError(f"module {name!r} fails at import: {type(error).__name__}: {error}") from error


def _found(module: object, path: str, reference: str) -> Any:
    try:
        return attrgetter(path)(module)
    except AttributeError as error:
        hint = near_names(str(error.name), dir(error.obj))
        raise CatalogError(f"{reference}: there is no {error.name!r}{hint}") from None
    except ImportError as error:  # of a module that imports its members when they are asked for
        raise CatalogError(f"{reference} needs a package that is not installed: {error}") from error
