"""What holds for many tools at once: a person declares it in one rule instead of an edge a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field

from callsheet.graphs.catalog.model import DependencyKind, Name, Record, Tool
from callsheet.graphs.text.sanitizing import split_name


class Selector(Record):
    """Which tools are meant. All that is given must hold; of a list, one is enough; what is not given does not matter.

    Attributes:
        ids: Patterns of ids with ``*``, ``?`` and ``[...]``; one without a slash is held against the bare name.
        words: Words or phrases of which the name or the description holds one, in upper or lower case.
        core: Whether it is a core tool.
        annotations: MCP's hints with the value that they must have, such as ``{"openWorldHint": true}``.
    """

    ids: tuple[Name, ...] = ()
    words: tuple[Name, ...] = ()
    core: bool | None = None
    annotations: Mapping[str, Any] = Field(default_factory=dict)

    def selects(self, tool: Tool) -> bool:
        """Whether this tool is meant."""
        return (
            (not self.ids or any(_fits(pattern, tool) for pattern in self.ids))
            and (not self.words or _holds(self.words, tool))
            and (self.core is None or tool.core == self.core)
            and all(tool.annotations.get(name, _MISSING) == value for name, value in self.annotations.items())
        )


class Rule(Record):
    """A dependency of every tool that is meant, such as: what needs the network needs to know whether it is there.

    Attributes:
        tools: The tools that it is for.
        without: Tools that it is not for, though they are meant by ``tools``; none where not given.
        depends_on: Names or ids of the tools that they need; a tool never depends on itself.
        kind: One of the four kinds.
        reason: Why, in the author's words.
    """

    tools: Selector = Selector()
    without: Selector | None = None
    depends_on: Annotated[tuple[Name, ...], Field(min_length=1)]
    kind: DependencyKind = DependencyKind.TOOL_DIRECTLY
    reason: str = ""

    def selects(self, tool: Tool) -> bool:
        """Whether the rule is for this tool."""
        return self.tools.selects(tool) and not (self.without is not None and self.without.selects(tool))


_MISSING = object()
_NO_LETTER = re.compile(r"[\W_]+")


def _fits(pattern: str, tool: Tool) -> bool:
    return fnmatchcase(tool.id if "/" in pattern else tool.name, pattern)


def _holds(words: Sequence[str], tool: Tool) -> bool:
    text = _plain(f"{split_name(tool.name)} {tool.description}")
    return any(_plain(word) in text for word in words)


def _plain(text: str) -> str:
    return f" {_NO_LETTER.sub(' ', text.casefold()).strip()} "
