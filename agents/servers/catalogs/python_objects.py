"""Makes a catalog from Python objects: LangChain tools, functions, toolkits, LangGraph apps and other runnables."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, InjectedToolCallId, tool as tool_from
from pydantic.alias_generators import to_camel

from callsheet.agents.servers.a2a.agent import A2AAgent, agent_id_of, connection
from callsheet.agents.servers.catalogs.server_catalog import read_listings
from callsheet.agents.servers.in_process import InProcess, description_of, tool_of_app
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.formats.manifests import Problem, agent_from_listing
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.sources.loaded import Loaded, SourceCatalog, join_parts

_ACCEPTED = (
    "a Catalog, a LangChain tool, a function with a docstring, a toolkit, a LangGraph app or another runnable, an "
    "A2AAgent, a list or a dict of these, or a function giving one"
)
_NAMELESS = ("", "LangGraph", "<lambda>")
_INJECTED = (
    "tool {!r} is left out: the workflow that calls it must fill its parameter {!r}, which Callsheet cannot do. "
    "Make it an argument, or use get_config() or get_store() in the tool"
)
_TOOL = (BaseTool, FunctionType, MethodType, BuiltinFunctionType)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
TOOLS = "tools"
"""The id of the agent to which tools without an agent belong."""


def load_objects(found: object) -> SourceCatalog:
    """Reads Python objects as a catalog.

    Args:
        found: A ``Catalog``, a LangChain tool, a function with a docstring (it becomes a tool), a toolkit, a LangGraph
            app, ``RemoteGraph`` or other runnable, an ``A2AAgent``, a dict of these by agent id, or a function without
            arguments that returns one of these. The tools and functions of a list make one agent, ``tools``; each other
            member makes an agent with its own name. ``{"description": ..., "tools": ...}`` describes an agent.

    Raises:
        CatalogError: It has another type, an app has no name, or a function cannot be a tool.
    """
    return read_objects(found, _own_name(found), "the catalog")


def read_objects(found: object, name: str, where: str) -> SourceCatalog:
    """Reads objects as ``load_objects`` does; ``name`` is the default id of an agent, ``where`` the origin."""
    match found:
        case SourceCatalog():
            return found
        case Loaded():
            return found.part
        case Catalog():
            return SourceCatalog(found.agents, skills=found.skills)
        case {"tools": tools, "description": str() as description, **rest} if not rest:
            return _described(name, tools, where, description)
        case Mapping():
            if not found:
                raise CatalogError(f"{where}: the dict is empty: name at least one agent")
            return join_parts([read_objects(value, str(key), where) for key, value in found.items()])
        case list() | tuple():
            return _members(name, found, where)
        case _:
            return _live(name, found, where)


def _described(name: str, found: object, where: str, description: str) -> SourceCatalog:
    """Reads an object whose agents get this description."""
    if _is_app(found):
        return _app(name, found, where, description)
    part = read_objects(found, name, where)
    agents = tuple(agent.model_copy(update={"description": description}) for agent in part.agents)
    return replace(part, agents=agents)


def _members(name: str, found: Sequence[object], where: str) -> SourceCatalog:
    """Reads a list: its tools are one agent, each other member is an agent with its own name."""
    parts: list[SourceCatalog] = []
    tools = [member for member in found if isinstance(member, _TOOL)]
    if tools or not found:  # an empty list is refused there
        parts.append(part_of_tools(name or TOOLS, tools, where))
    others = [member for member in found if not isinstance(member, _TOOL)]
    parts += [read_objects(member, _own_name(member), where) for member in others]
    return join_parts(parts)


def _own_name(found: object) -> str:
    name = getattr(found, "name", None) or getattr(found, "__name__", None)
    if name is None and hasattr(found, "get_tools"):
        name = type(found).__name__
    return name if isinstance(name, str) and name not in _NAMELESS else ""


def _live(name: str, found: object, where: str) -> SourceCatalog:
    match found:
        case BaseTool():
            return part_of_tools(name or found.name, [found], where)
        case A2AAgent():
            return _endpoint(name, found, where)
        case _ if callable(get_tools := getattr(found, "get_tools", None)) and not isinstance(found, type):
            return part_of_tools(name, list(call_foreign(get_tools, where)), where, doc_of(found))
        case _ if _is_app(found):
            return _app(name or _own_name(found), found, where)
        case _ if callable(getattr(found, "compile", None)) and hasattr(found, "add_node"):
            raise CatalogError(f"{where}: {name!r} is a workflow that is not compiled: give workflow.compile()")
        case FunctionType() | MethodType() if _takes_arguments(found):
            return part_of_tools(name, [found], where)
        case _ if callable(found):
            origin = f"{where}: what {_own_name(found) or type(found).__name__}() returns"
            return read_objects(call_foreign(found, where), name, origin)
        case _:
            what = repr(name) if name else "it"
            raise CatalogError(f"{where}: {what} is of type {type(found).__name__}; it may be {_ACCEPTED}")


def _takes_arguments(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.default is parameter.empty for parameter in parameters if parameter.kind not in _VARIADIC)


def call_foreign(function: Callable[[], Any], where: str) -> Any:
    """Calls foreign code and returns its result; any exception becomes a ``CatalogError``."""
    try:
        return function()
    except Exception as error:  # foreign code may raise anything
        raise CatalogError(f"{where}: calling it fails: {type(error).__name__}: {error}") from error


def _is_app(found: object) -> bool:
    return isinstance(found, Runnable) and not isinstance(found, BaseTool)


def _endpoint(name: str, agent: A2AAgent, where: str) -> SourceCatalog:
    """Reads the card of an A2A agent in the caller's program, which is accepted without pins."""
    server = agent.server()
    pool = SessionPool()
    pool.limits.own(agent.limits)
    answer = pool.list_all({name: server})[name]
    name = name or agent_id_of(answer)
    if not name:
        raise CatalogError(f"{where}: an A2A agent has no name: give it one: {answer.error or 'its card has none'}")
    part = read_listings({name: server}, {name: answer})
    return replace(part, connections={agent.id: connection(agent.id, server, None) for agent in part.agents})


def _app(name: str, app: Any, where: str, description: str = "") -> SourceCatalog:
    if not name:
        raise CatalogError(
            f"{where}: a {type(app).__name__} has no name: give it one, compile(name=...), or give a dict by agent id"
        )
    about = description or description_of(name, app)
    return part_of_tools(name, [tool_of_app(name, app, about)], where, about)


def part_of_tools(name: str, tools: Sequence[object], where: str, description: str = "") -> SourceCatalog:
    """Makes one agent from tools, or from functions with docstrings; ``where`` is their origin, for messages."""
    usable, left_out = usable_tools(name, tools, where)
    agent, problems = agent_from_listing(name, [entry_of(tool) for tool in usable], description=description)
    connections = {name: InProcess({tool.name: tool for tool in usable}, own=True)}
    return SourceCatalog((agent,), connections=connections, problems=(*left_out, *problems))


def usable_tools(name: str, tools: Sequence[object], where: str) -> tuple[list[BaseTool], tuple[Problem, ...]]:
    """Converts functions to tools, and reports a problem for each tool that only its own workflow can call.

    Raises:
        CatalogError: There is no tool, one has another type or cannot be a tool, or two have the same name.
    """
    if not tools:
        raise CatalogError(f"{where}: {name!r} holds no tool")
    made = [_tool(name, tool, where) for tool in tools]
    numbers = Counter(tool.name for tool in made)
    repeated = sorted(tool_name for tool_name, number in numbers.items() if number > 1)
    if repeated:
        raise CatalogError(f"{where}: {name!r} has several tools named {', '.join(repeated)}: rename them")
    usable: list[BaseTool] = []
    left_out: list[Problem] = []
    for tool in made:
        parameter = _injected(tool)
        if parameter:
            left_out.append(Problem(name, "malformed", _INJECTED.format(tool.name, parameter)))
        else:
            usable.append(tool)
    if not usable:
        raise CatalogError(f"{where}: {name!r}: {left_out[0].message}")
    return usable, tuple(left_out)


def _injected(tool: BaseTool) -> str:
    """Returns a required parameter that only the workflow of a tool can fill, such as its state; empty without one."""
    shown: Any = getattr(tool.tool_call_schema, "model_fields", None)
    if shown is None:
        return ""
    fields: Any = getattr(tool.get_input_schema(), "model_fields", {})
    for name, field in fields.items():
        if name not in shown and field.is_required() and InjectedToolCallId not in field.metadata:
            return str(name)
    return ""


def _tool(name: str, found: object, where: str) -> BaseTool:
    if isinstance(found, BaseTool):
        return found
    if not isinstance(found, FunctionType | MethodType):
        raise CatalogError(
            f"{where}: {name!r} holds a {type(found).__name__}, which is not a LangChain tool: wrap it with @tool"
        )
    try:
        return tool_from(parse_docstring=True, error_on_invalid_docstring=False)(found)
    except (TypeError, ValueError) as error:
        raise CatalogError(f"{where}: function {found.__name__!r} cannot be a tool: {error}") from error


def entry_of(tool: BaseTool) -> dict[str, Any]:
    """Converts a LangChain tool to an entry of ``tools/list``, so that one parser serves both."""
    schema: Any = tool.tool_call_schema
    if not isinstance(schema, Mapping):
        schema = schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema.schema()
    metadata = tool.metadata or {}
    mcp: Any = metadata.get("mcp")  # of langchain.mcp, with the names of Python
    adapted: Any = mcp.get("tool", {}) if isinstance(mcp, Mapping) else {}
    annotations: Any = {to_camel(key): value for key, value in adapted.get("annotations", {}).items()}
    annotations = annotations or metadata.get("annotations")
    if hasattr(annotations, "model_dump"):
        annotations = annotations.model_dump(by_alias=True, exclude_none=True)
    meta = {**adapted.get("_meta", {}), **metadata}
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(schema),
        "annotations": annotations,
        "_meta": {key: value for key, value in meta.items() if key.startswith("callsheet/")},
    }


def doc_of(found: object) -> str:
    """Returns the first paragraph of the docstring of an object's class."""
    doc = type(found).__dict__.get("__doc__")
    return doc.strip().split("\n\n")[0] if isinstance(doc, str) else ""
