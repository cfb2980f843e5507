"""Catalog sources that must be run: MCP servers to list, and Python objects to import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from callsheet.agents.calls.limits import Limits
from callsheet.agents.servers.catalogs.listings import LastKnown, LastListings
from callsheet.agents.servers.catalogs.python_objects import read_objects
from callsheet.agents.servers.catalogs.server_catalog import read_listings, remembered_answers
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import SourceCatalog, joined
from callsheet.graphs.trust.pins import PinBook


def load_servers(
    config: Mapping[str, ServerConfig],
    *,
    limits: Limits | None = None,
    pins: PinBook | None = None,
    agreed: Collection[str] = (),
    anew: bool = False,
) -> SourceCatalog:
    """Reads API specifications, and starts and lists MCP servers in parallel.

    Servers that answered recently (``Limits.fresh``) are not started.

    A server is asked anyway if it has no pin, if its entry has changed, or if a part of its last answer is quarantined.

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
    apis = {name: server for name, server in config.items() if server.transport == "openapi"}
    if apis:
        from callsheet.agents.servers.http_api.api_catalog import load_apis

        config = {name: server for name, server in config.items() if name not in apis}
        parts = [load_apis(apis, limits=limits, pins=pins, agreed=agreed, anew=anew)]
        if config:
            parts.append(load_servers(config, limits=limits, pins=pins, agreed=agreed, anew=anew))
        return joined(parts)
    pool, listings = SessionPool(limits=limits), LastListings()
    last: dict[str, LastKnown] = {}
    for name, server in config.items():
        for own in server.callsheet.tools.values():
            pool.limits.own(own)
        seconds = pool.limits.own(server.callsheet.limits).fresh
        if not anew and (answer := listings.fresh(name, server, seconds)):
            last[name] = answer
    known = remembered_answers(config, last, pins=pins, agreed=agreed)
    answers = pool.list_all({name: server for name, server in config.items() if name not in known})
    answers = {name: known[name].listing if name in known else answers[name] for name in config}
    remembered = {name: answer.when for name, answer in known.items()}
    return read_listings(config, answers, pins=pins, agreed=agreed, listings=listings, remembered=remembered)


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
