"""The tools that a client sees directly, beside those of the gateway: the best of its last search."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp import types

from callsheet.agents.tools.binding import object_schema
from callsheet.agents.tools.tool_names import names_of
from callsheet.graphs import Catalog, Tool, shown, shown_schema

_MOST_SESSIONS, _LONGEST_TITLE = 1_000, 200


@dataclass(slots=True)
class _Session:
    used: OrderedDict[str, None] = field(default_factory=OrderedDict)
    names: dict[str, str] = field(default_factory=dict)


class DirectTools:
    """The tools that each session found last, at most ``most``.

    A change of the list costs a client its provider's prompt cache, since tools stand at the beginning of a prompt. So
    the list changes only when a search finds a tool that is not in it; new tools then replace those that were found
    or called longest ago. A name never stands for two tools in one session.

    Args:
        most: Maximum number of tools of a session; 0 for none.
        own: Names of the gateway's own tools.
    """

    def __init__(self, most: int, own: Sequence[str]) -> None:
        self.most, self._own = most, frozenset(own)
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def show(self, session: str, found: Sequence[str]) -> bool:
        """Puts tools, best first, into a session's list; returns whether the list has changed."""
        if not self.most:
            return False
        held = self._sessions.setdefault(session, _Session()).used
        self._sessions.move_to_end(session)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        before = set(held)
        for tool_id in reversed(found[: self.most]):
            held[tool_id] = None
            held.move_to_end(tool_id)
        while len(held) > self.most:
            held.popitem(last=False)
        return set(held) != before

    def named(self, session: str, catalog: Catalog) -> dict[str, Tool]:
        """A session's tools by the name that a model sees, by id; those that have gone are left out."""
        if (held := self._sessions.get(session)) is None:
            return {}
        tools = [catalog.tools[tool_id] for tool_id in sorted(held.used) if tool_id in catalog.tools]
        for tool in tools:
            if tool.id not in held.names:
                taken = {*held.names.values(), *self._own}
                held.names[tool.id] = next(name for name in names_of(tool.agent, tool.name) if name not in taken)
        return {held.names[tool.id]: tool for tool in tools}


def definition(name: str, tool: Tool) -> types.Tool:
    """A tool in valid form, whatever its server says: one that is not would cost the client the whole list."""
    hints = {name: value for name, value in tool.annotations.items() if isinstance(value, bool)}
    return types.Tool(
        name=name,
        title=shown(tool.title, most=_LONGEST_TITLE) or None,
        description=f"{shown(tool.description)} ({tool.id})",
        input_schema=object_schema(shown_schema(tool.input_schema)),
        annotations=types.ToolAnnotations.model_validate(hints),
    )
