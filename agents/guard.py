"""Vetoes on calls: what the last thing says that looks at one before it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from callsheet.agents.listings import Listing
from callsheet.graphs.catalog import Tool
from callsheet.graphs.mcp import ServerConfig
from callsheet.graphs.pins import Change, digest, digests
from callsheet.graphs.policy import Policy
from callsheet.graphs.rules import User

AGREED: ContextVar[bool] = ContextVar("callsheet_agreed", default=False)
"""Whether a person has agreed to the call that is under way."""


class Unchanged:
    """Refuses a tool whose server says something else of it now than when the catalog was read.

    A server says what its tools are whenever a session with it opens, and again when it announces a change.

    Args:
        accepted: Tool id -> SHA-256 of the definition that the catalog was read with (``Loaded.digests``).
    """

    def __init__(self, accepted: Mapping[str, str] | None = None) -> None:
        self._accepted = accepted or {}
        self._said: dict[str, Mapping[str, str]] = {}

    def follow(self, accepted: Mapping[str, str]) -> None:
        """Takes these for accepted from now on."""
        self._accepted = accepted

    def pin(self, tool: Tool) -> str:
        """SHA-256 of the definition that a tool was accepted with; of what the catalog says where nobody pinned it."""
        return self._accepted.get(tool.id) or digest(tool.model_dump(mode="json"))

    def heard(self, agent_id: str, server: ServerConfig, listing: Listing) -> None:
        """Takes note of what a server says of its tools."""
        self._said[agent_id] = digests(listing.tools)

    def __call__(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Why a call must not be sent; empty if it may."""
        accepted, said = self._accepted.get(tool.id), self._said.get(tool.agent)
        if accepted is None or said is None or said.get(tool.name) == accepted:
            return ""
        gone = "its server does not offer it any more, or more than once"
        what = "its definition has changed" if tool.name in said else gone
        return f"{what} since the catalog was read: look at it with `callsheet approve {tool.id}`"


def forbidden(policy: Policy | None, tool: Tool, user: User | None) -> str:
    """Why a policy does not allow a call; empty if it does, or there is none."""
    if policy is None or policy.allows(tool, user):
        return ""
    return f"the policy does not allow {f'{user.id!r} to call it' if user and user.id else 'that it is called'}"


def gone(tool: Tool, changes: Sequence[Change]) -> str:
    """Why the catalog does not hold a tool that it once held."""
    change = next((c for c in changes if c.quarantines and c.id in (tool.id, tool.agent)), None)
    if change is None:
        return "its server does not offer it any more, or the catalog leaves it out by now"
    what = "its definition has changed" if change.tool else "its server is reached by another command"
    return f"{what} since it was accepted: look at it with `callsheet approve {change.id}`"
