"""Answers requests for tools in the same way for a worker and for an agent with ``CallsheetTools``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from callsheet.agents import ToolRegistry, ToolRequests
from callsheet.graphs import User
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.roster import lines_for, list_tools, roster

_FEW = 5
"""Number of agents for words, for a model that sees the names of all tools anyway."""


def tool_requests(
    visible: AgentGraphRetriever,
    registry: ToolRegistry,
    user: User | None,
    *,
    bind: Callable[..., Mapping[str, Any]],
    roster_tokens: int = 0,
    **more: Any,
) -> ToolRequests:
    """Makes the object that answers requests for tools: it adds named tools, and answers other words with names.

    ``visible`` is restricted to what the user may see. ``bind`` makes tools from their ids, given the names in use.
    ``roster_tokens`` is the limit of the roster that the model sees, if it sees one; if that has all names, words are
    answered with the lines of few agents. ``more`` are further fields of ``ToolRequests``.
    """
    catalog = visible.catalog
    few = _FEW if roster_tokens and roster(catalog, max_tokens=roster_tokens).whole else None

    def refused(ids: Sequence[str]) -> Mapping[str, str]:
        down = registry.unavailable()
        tools = [one for one in ids if one in catalog.tools]
        failing = {one: down[catalog.tools[one].agent] for one in tools if catalog.tools[one].agent in down}
        return {**failing, **registry.refused(tools, user)}

    return ToolRequests(
        catalog=catalog,
        find=lambda words: asyncio.to_thread(lines_for, visible, words, most=few),
        list_tools=lambda agent: list_tools(catalog, agent),
        bind=bind,
        refused=refused,
        **more,
    )
