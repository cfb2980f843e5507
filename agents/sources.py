"""Catalogs that are alive: MCP servers to be listed, and Python objects to be imported."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callsheet.agents.calls import Limits
from callsheet.agents.sessions import Listing, SessionPool
from callsheet.graphs.catalog import Catalog
from callsheet.graphs.changes import problems_of
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.loaded import Loaded, Part, joined
from callsheet.graphs.mcp import Problem, ServerConfig, agent_from_listing
from callsheet.graphs.pin_book import PinBook
from callsheet.graphs.pins import Admitted, Listed, everything

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

_ACCEPTED = "a Catalog, LangChain tools, a toolkit, a LangGraph app, a dict of these by name, or a function giving one"
_DEEPEST = 4


def load_servers(
    config: Mapping[str, ServerConfig],
    *,
    limits: Limits | None = None,
    pins: PinBook | None = None,
    agreed: Collection[str] = (),
) -> Part:
    """Starts and lists MCP servers side by side.

    Args:
        config: The servers by agent id.
        limits: Bounds of time for each server by itself.
        pins: What was accepted of these servers; what differs from it is left out. Everything is taken where None.
        agreed: Servers whose present command a person has agreed to.

    Returns:
        An agent for each server that answered; a server that is missing, hangs or crashes is a
        problem that names it, and the rest go on.

    Raises:
        TrustError: The pins cannot be relied on.
    """
    if pins is not None:
        pins.servers()
    listings = SessionPool(limits=limits).list_all(config)
    down = {agent_id: listing for agent_id, listing in listings.items() if listing.error}
    listed = {name: _listed(config[name], listing) for name, listing in listings.items() if name not in down}
    admitted = pins.admit(listed, agreed=agreed) if pins else {name: everything(said) for name, said in listed.items()}
    lost = Part(problems=tuple(Problem(name, listing.kind, listing.error) for name, listing in down.items()))
    return joined([lost, *(_of_server(name, config[name], said) for name, said in admitted.items())])


def _listed(server: ServerConfig, listing: Listing) -> Listed:
    about = {"name": listing.name, "description": listing.description, "instructions": listing.instructions}
    return Listed(server, about, listing.tools)


def _of_server(agent_id: str, server: ServerConfig, said: Admitted) -> Part:
    agent, malformed = agent_from_listing(agent_id, said.entries, **said.about)
    return Part(
        agents=(agent,),
        connections={agent.id: server},
        problems=(*malformed, *problems_of(said.changes)),
        digests={tool.id: said.digests[tool.name] for tool in agent.tools},
        changes=said.changes,
    )


def load_reference(reference: str) -> Part:
    """Imports ``module:object`` and reads the object as a catalog.

    Args:
        reference: The object may be a ``Catalog``, a LangChain tool, a list of tools, a toolkit, a
            LangGraph app or other runnable, a dict of these by agent id, or a function without
            arguments that gives one of these. The agent of a bare object has the object's name;
            ``{"description": ..., "tools": ...}`` says what an agent is for.

    Raises:
        CatalogError: The module cannot be imported, has no such object, or the object is none of these.
    """
    module, _, path = reference.partition(":")
    if not module or not path:
        raise CatalogError(f"{reference!r} is not a reference: write module:object")
    return _part(path.rsplit(".", 1)[-1], _found(_imported(module), path, reference), reference)


def _imported(name: str) -> Any:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise CatalogError(f"there is no module {error.name!r}: correct the name or install it") from error
        raise CatalogError(f"module {name!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:  # importing runs code of others, which may raise anything
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


def _part(name: str, found: Any, reference: str, depth: int = 0) -> Part:
    if depth > _DEEPEST:
        raise CatalogError(f"{reference}: functions and dicts are nested too deeply")
    match found:
        case Part():
            return found
        case Loaded():
            return found.part
        case Catalog():
            return Part(found.agents)
        case {"tools": tools, "description": str() as description, **rest} if not rest:
            return _described(_part(name, tools, reference, depth + 1), description)
        case Mapping():
            return _joined([_part(str(key), value, reference, depth + 1) for key, value in found.items()], reference)
        case _:
            return _live(name, found, reference, depth)


def _described(part: Part, description: str) -> Part:
    agents = tuple(agent.model_copy(update={"description": description}) for agent in part.agents)
    return replace(part, agents=agents)


def _live(name: str, found: Any, reference: str, depth: int) -> Part:
    from langchain_core.runnables import Runnable
    from langchain_core.tools import BaseTool

    match found:
        case BaseTool():
            return part_of_tools(name, [found], reference)
        case list() | tuple():
            return part_of_tools(name, found, reference)
        case _ if callable(get_tools := getattr(found, "get_tools", None)) and not isinstance(found, type):
            return part_of_tools(name, list(_called(get_tools, reference)), reference, _doc(found))
        case Runnable():
            return _app(name, found, reference)
        case _ if callable(getattr(found, "compile", None)) and hasattr(found, "add_node"):
            raise CatalogError(f"{reference}: {name!r} is a workflow that is not compiled: give workflow.compile()")
        case _ if callable(found):
            return _part(name, _called(found, reference), reference, depth + 1)
        case _:
            raise CatalogError(f"{reference}: {name!r} is of type {type(found).__name__}; it may be {_ACCEPTED}")


def _called(function: Callable[[], Any], reference: str) -> Any:
    try:
        return function()
    except Exception as error:  # code of others may raise anything
        raise CatalogError(f"{reference}: calling it fails: {type(error).__name__}: {error}") from error


def _joined(parts: Sequence[Part], reference: str) -> Part:
    if not parts:
        raise CatalogError(f"{reference}: the dict is empty: name at least one agent")
    return joined(list(parts))


def _app(name: str, app: Any, reference: str) -> Part:
    from callsheet.agents.app_tool import description_of, tool_of_app

    return part_of_tools(name, [tool_of_app(name, app)], reference, description_of(name, app))


def part_of_tools(name: str, tools: Sequence[Any], reference: str, description: str = "") -> Part:
    """One agent of LangChain tools of this process.

    Args:
        name: Its id.
        tools: The tools.
        reference: Where they come from, for messages.
        description: What it is for.

    Raises:
        CatalogError: There is no tool, one is of another type, or two have one name.
    """
    from langchain_core.tools import BaseTool

    from callsheet.agents.local import InProcess

    if not tools:
        raise CatalogError(f"{reference}: {name!r} holds no tool")
    for tool in tools:
        if not isinstance(tool, BaseTool):
            raise CatalogError(
                f"{reference}: {name!r} holds a {type(tool).__name__}, which is no LangChain tool: wrap it with @tool"
            )
    if repeated := sorted(n for n, count in Counter(tool.name for tool in tools).items() if count > 1):
        raise CatalogError(f"{reference}: {name!r} has several tools named {', '.join(repeated)}: rename them")
    agent, problems = agent_from_listing(name, [_entry(tool) for tool in tools], description=description)
    return Part((agent,), {name: InProcess({tool.name: tool for tool in tools})}, problems)


def _entry(tool: BaseTool) -> dict[str, Any]:
    """A LangChain tool in the form of an entry of ``tools/list``, so that one reader serves both."""
    schema: Any = tool.tool_call_schema
    metadata = tool.metadata or {}
    annotations: Any = metadata.get("annotations")
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(schema) if isinstance(schema, Mapping) else _json_schema(schema),
        "annotations": annotations.model_dump(by_alias=True, exclude_none=True)
        if hasattr(annotations, "model_dump")
        else annotations,
        "_meta": {key: value for key, value in metadata.items() if key.startswith("callsheet/")},
    }


def _json_schema(model: Any) -> dict[str, Any]:
    schema: dict[str, Any] = model.model_json_schema() if hasattr(model, "model_json_schema") else model.schema()
    return schema


def _doc(found: object) -> str:
    """First paragraph of the docstring of the object's own class."""
    doc = type(found).__dict__.get("__doc__")
    return doc.strip().split("\n\n")[0] if isinstance(doc, str) else ""
