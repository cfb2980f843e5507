"""Catalog sources that must be run: MCP servers, listed whenever they change, and Python objects to import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from operator import attrgetter
from pathlib import Path
from typing import Any

from callsheet.agents.calls.limits import Limits
from callsheet.agents.servers.catalogs.listings import LastListings, Listing
from callsheet.agents.servers.catalogs.python_objects import read_objects
from callsheet.agents.servers.catalogs.server_catalog import listed_by, read_listings
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import SourceCatalog, joined
from callsheet.graphs.trust.pin_book import PinBook


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
        pins: Accepted definitions; anything else is left out. If None, everything is accepted.
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
        if not anew and (answer := LastListings().last(name, server, within=seconds)):
            known[name] = answer
    if pins:
        pinned = pins.servers()
        listed = {name: listed_by(config[name], answer) for name, answer in known.items() if name in pinned}
        admitted = pins.admit(listed, agreed=agreed)
        # A quarantined change may be over.
        known = {name: known[name] for name, one in admitted.items() if not any(c.quarantines for c in one.changes)}
    asked = pool.list_all({name: server for name, server in config.items() if name not in known})
    answers = {name: known.get(name) or asked[name] for name in config}
    return read_listings(config, answers, pins=pins, agreed=agreed)


def load_reference(reference: str) -> SourceCatalog:
    """Imports ``module:object`` as a catalog, as ``load_objects``; an agent without a name gets the object's name.

    Raises:
        CatalogError: The module cannot be imported or has no such object, or the object has another type.
    """
    module, _, path = reference.partition(":")
    if not module or not path:
        raise CatalogError(f"{reference!r} is not a reference: write module:object")
    imported = _imported(module)
    try:
        found = attrgetter(path)(imported)
    except AttributeError as error:
        near = get_close_matches(str(error.name), dir(error.obj), n=3)
        hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        raise CatalogError(f"{reference}: there is no {error.name!r}{hint}") from None
    return read_objects(found, path.rsplit(".", 1)[-1], reference)


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
