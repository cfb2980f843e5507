"""The types that are accepted as a catalog source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import Loaded, Part
from callsheet.graphs.catalog.model import Catalog


class ToolSource(Protocol):
    """A LangChain toolkit."""

    def get_tools(self) -> Any:
        """The tools."""


class Invocable(Protocol):
    """A LangChain tool, a compiled LangGraph app, a ``RemoteGraph``, or any other runnable."""

    def invoke(self, input: Any, config: Any = None, **more: Any) -> Any:  # noqa: A002 (LangChain's name)
        """Runs it."""


class Reachable(Protocol):
    """A remote agent with its address: an ``A2AAgent``."""

    def server(self) -> ServerConfig:
        """The configuration of the connection."""
        ...


Named = str | Path | Catalog | Loaded | Part
"""A file, or a catalog that is already loaded."""
Live = Mapping[str, Any] | Sequence[Any] | ToolSource | Invocable | Reachable | Callable[..., Any]
"""Agents of this process: objects by agent id, a list of them, or one."""
CatalogSource = Named | Live
"""A catalog of any kind, or a list of several."""


def sources_of(*arguments: CatalogSource) -> tuple[CatalogSource, ...]:
    """The arguments as single sources.

    A list or tuple that holds a path or a catalog is several sources; its other items together are one more source.
    Any other list is one source: tools, or agents with names.
    """
    return tuple(source for argument in arguments for source in _flattened(argument))


def _flattened(argument: CatalogSource) -> Sequence[CatalogSource]:
    if not isinstance(argument, list | tuple):
        return (argument,)
    catalogs = [item for item in argument if isinstance(item, Named)]
    objects = [item for item in argument if not isinstance(item, Named)]
    return [*catalogs, objects] if objects else catalogs


def label_of(source: CatalogSource) -> str:
    """Path or name of a source; empty for an object in memory."""
    match source:
        case Loaded():
            return source.label
        case str() | Path():
            return str(Path(source).resolve()) if Path(source).exists() else str(source)
        case _:
            return ""
