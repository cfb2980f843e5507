"""Answers requests for tools in the same way for a worker and for an agent with ``CallsheetTools``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from callsheet.agents import Supervision, ToolRegistry, ToolRequests
from callsheet.agents.approval.late_tools import accept_late, can_accept
from callsheet.graphs import Catalog, User
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
    supervision: Supervision,
    run_id: str,
    roster_tokens: int = 0,
    **more: Any,
) -> ToolRequests:
    """Makes the object that answers requests for tools: it adds named tools, and answers other words with names.

    Args:
        visible: The retriever, restricted to what the user may see.
        registry: The tools.
        user: The user.
        bind: Makes tools from their ids, given the names in use.
        supervision: Says whether a person can accept what servers add in the run.
        run_id: The run, whose servers may be about to list their tools again.
        roster_tokens: The limit of the roster that the model sees, if it sees one; if that has all names, words are
            answered with the lines of few agents.
        more: Further fields of ``ToolRequests``.
    """
    catalog = visible.catalog
    few = _FEW if roster_tokens and roster(catalog, max_tokens=roster_tokens).whole else None

    def refused(ids: Sequence[str]) -> Mapping[str, str]:
        down = registry.unavailable()
        known = registry.catalog.tools
        tools = [one for one in ids if one in known]
        failing = {one: down[known[one].agent] for one in tools if known[one].agent in down}
        return {**failing, **registry.refused(tools, user)}

    async def admit(names: Sequence[str]) -> tuple[Catalog, Mapping[str, str]]:
        # What a server has added since the last call may be about to be listed.
        await registry.pool.settled(run_id, [agent for agent in catalog.by_id if _is_named(agent, names)])
        if not registry.late(user).keys() & set(names):
            return catalog, {}
        unfit = await accept_late(names, supervision, user)
        whole = registry.catalog
        return registry.policy.view(whole, user or User()).catalog if registry.policy else whole, unfit

    async def late(agent: str) -> Sequence[str]:
        if not can_accept(supervision):
            return ()
        # A server announces a change before it answers the call that caused it.
        await registry.pool.settled(run_id, [agent])
        return [name for name, change in registry.late(user).items() if change.agent == agent]

    return ToolRequests(
        catalog=catalog,
        admit=admit,
        late=late,
        find=lambda words: asyncio.to_thread(lines_for, visible, words, most=few),
        list_tools=lambda agent: list_tools(catalog, agent),
        bind=bind,
        refused=refused,
        **more,
    )


def _is_named(agent: str, names: Sequence[str]) -> bool:
    """Returns whether one of these ids is that of a tool of an agent."""
    return any(name.startswith(f"{agent}/") for name in names)
