"""What a caller may give as a catalog, and whether it is one source or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from callsheet.graphs.catalog.formats.mcp_format import ServerConfig
from callsheet.graphs.catalog.loaded import Loaded, Part
from callsheet.graphs.catalog.model import Catalog


class ToolSource(Protocol):
    """A toolkit: what gives LangChain tools."""

    def get_tools(self) -> Any:
        """The tools."""


class Invocable(Protocol):
    """A LangChain tool, a compiled LangGraph app, a ``RemoteGraph``, or any other runnable."""

    def invoke(self, input: Any, config: Any = None, **more: Any) -> Any:  # noqa: A002 (LangChain's name)
        """Runs it."""


class Reachable(Protocol):
    """An agent elsewhere that knows how it is reached: an ``A2AAgent``."""

    def server(self) -> ServerConfig:
        """How."""
        ...


Named = str | Path | Catalog | Loaded | Part
"""A source that is read from a file, or was read already."""
Live = Mapping[str, Any] | Sequence[Any] | ToolSource | Invocable | Reachable | Callable[..., Any]
"""Agents of this process: objects by agent id, a list of them, or one."""
CatalogSource = Named | Live
"""A catalog of any kind; a list that holds several is several sources."""


def sources_of(*given: CatalogSource) -> tuple[CatalogSource, ...]:
    """The sources that somebody gave, one by one.

    A list or tuple that holds a path or a catalog is several sources, and its other items are together one of them.
    Any other list is one: tools, or agents that know their names.
    """
    return tuple(source for one in given for source in _apart(one))


def _apart(given: CatalogSource) -> Sequence[CatalogSource]:
    if not isinstance(given, list | tuple):
        return (given,)
    named = [item for item in given if isinstance(item, Named)]
    live = [item for item in given if not isinstance(item, Named)]
    return [*named, live] if live else named


def label_of(source: CatalogSource) -> str:
    """What a source is read from; empty for one that is in memory."""
    match source:
        case Loaded():
            return source.label
        case str() | Path():
            return str(Path(source).resolve()) if Path(source).exists() else str(source)
        case _:
            return ""
