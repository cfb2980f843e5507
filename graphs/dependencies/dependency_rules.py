"""Rules that declare a dependency of many tools at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field

from callsheet.graphs.catalog.model import DependencyKind, Tool
from callsheet.graphs.catalog.record import Name, Record
from callsheet.graphs.text.sanitizing import split_name


class Selector(Record):
    """Conditions on tools. A tool must meet all conditions that are set; one item of a list is enough.

    Attributes:
        ids: Patterns of ids with ``*``, ``?`` and ``[...]``; a pattern without a slash matches the bare name.
        words: Words or phrases in the name or the description; case does not matter.
        core: Whether the tool is a core tool.
        annotations: MCP's hints with their values, such as ``{"openWorldHint": true}``.
    """

    ids: tuple[Name, ...] = ()
    words: tuple[Name, ...] = ()
    core: bool | None = None
    annotations: Mapping[str, Any] = Field(default_factory=dict)

    def selects(self, tool: Tool) -> bool:
        """Whether a tool meets the conditions."""
        return (
            (not self.ids or any(_matches(pattern, tool) for pattern in self.ids))
            and (not self.words or _contains(self.words, tool))
            and (self.core is None or tool.core == self.core)
            and all(tool.annotations.get(name, _MISSING) == value for name, value in self.annotations.items())
        )


class Rule(Record):
    """A dependency of all matching tools, for example of all network tools on a connection check.

    Attributes:
        tools: The tools that depend on the others.
        without: Exceptions from ``tools``.
        depends_on: Names or ids of the tools that they need; a tool never depends on itself.
        kind: One of the four kinds.
        reason: The author's reason.
    """

    tools: Selector = Selector()
    without: Selector | None = None
    depends_on: Annotated[tuple[Name, ...], Field(min_length=1)]
    kind: DependencyKind = DependencyKind.TOOL_DIRECTLY
    reason: str = ""

    def selects(self, tool: Tool) -> bool:
        """Whether the rule applies to a tool."""
        return self.tools.selects(tool) and not (self.without is not None and self.without.selects(tool))


_MISSING = object()
_NO_LETTER = re.compile(r"[\W_]+")


def _matches(pattern: str, tool: Tool) -> bool:
    return fnmatchcase(tool.id if "/" in pattern else tool.name, pattern)


def _contains(words: Sequence[str], tool: Tool) -> bool:
    text = _folded(f"{split_name(tool.name)} {tool.description}")
    return any(_folded(word) in text for word in words)


def _folded(text: str) -> str:
    return f" {_NO_LETTER.sub(' ', text.casefold()).strip()} "
