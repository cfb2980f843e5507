"""What is checked right before a call is sent: policy, changed definitions, withdrawn tools, arguments, folders."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import unquote

from callsheet.agents.calls.call_context import USER
from callsheet.agents.safety.arguments import FitTo, outside
from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.agents.servers.catalogs.server_resources import RESOURCE, TEMPLATE, read_request
from callsheet.agents.servers.in_process import InProcess
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import Loaded
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.text.sanitizing import shown
from callsheet.graphs.trust.pins import digest, digests
from callsheet.graphs.trust.policy import User

_LONGEST_URI = 200
AGREED: ContextVar[bool] = ContextVar("callsheet_agreed", default=False)
"""Whether a person has approved the current call."""

NOT_OFFERED = "its server does not offer it any more, or more than once, or the catalog leaves it out by now"


class DefinitionGuard:
    """Refuses a tool whose server defines it differently than when the catalog was loaded.

    A server lists its tools whenever a session opens, and again when it announces a change.
    """

    def __init__(self) -> None:
        self._accepted: Mapping[str, str] = {}
        self._said: dict[tuple[str, str], Mapping[str, str]] = {}

    def follow(self, accepted: Mapping[str, str]) -> None:
        """Replaces the accepted definitions: tool id -> SHA-256 (``Loaded.digests``)."""
        self._accepted = accepted

    def pin(self, tool: Tool) -> str:
        """SHA-256 of a tool's accepted definition; without a pin, of its definition in the catalog."""
        return self._accepted.get(tool.id) or digest(tool.model_dump(mode="json"))

    def heard(self, agent_id: str, server: ServerConfig, listing: Listing, user: str) -> None:
        """Records what a server lists to a user, or to all (an empty one)."""
        self._said[agent_id, user] = {**digests(listing.resources), **digests(listing.tools)}

    def __call__(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Why a call for the current user must not be sent; empty if it may."""
        accepted = self._accepted.get(tool.id)
        said = self._said.get((tool.agent, USER.get())) or self._said.get((tool.agent, ""))
        if accepted is None or said is None or said.get(tool.name) == accepted:
            return ""
        return changed(tool.id) if tool.name in said else NOT_OFFERED


def changed(change_id: str, what: str = "its definition") -> str:
    """The message about a changed definition, with the command to review it."""
    return f"{what} has changed since it was accepted: look at it with `callsheet approve {change_id}`"


def why_not(tool_id: str, loaded: Loaded, user: User | None) -> str:
    """Why a tool may not be called with any arguments; empty if it may."""
    if tool := loaded.catalog.tools.get(tool_id):
        if loaded.policy is None or loaded.policy.allows(tool, user):
            return ""
        return "the policy does not allow " + (f"{user.id!r} to call it" if user and user.id else "this call")
    ids = (tool_id, tool_id.split("/", 1)[0])
    change = next((change for change in loaded.changes if change.quarantines and change.id in ids), None)
    if change is None:
        return NOT_OFFERED
    return changed(change.id, "its definition" if change.tool else "the command of its server")


def hidden_resource(tool: Tool, arguments: Mapping[str, Any], loaded: Loaded, user: User | None) -> str:
    """Why a template must not read what its arguments name: a resource that the policy hides from the user.

    Args:
        tool: The template; for other tools, there is nothing to check.
        arguments: Values of its variables, which fit its schema.
        loaded: The resources, with the policy.
        user: The caller.
    """
    policy = loaded.policy
    if policy is None or not tool.name.startswith(TEMPLATE):
        return ""
    uri = read_request(tool.name, arguments)[1]["uri"]
    plain = unquote(uri)
    same = [tool.model_copy(update={"name": f"{RESOURCE}{spelled}"}) for spelled in (uri, plain)]
    listed = [one for one in loaded.catalog.by_id[tool.agent].tools if unquote(one.name) == f"{RESOURCE}{plain}"]
    if any(policy.denies(one, user) for one in same) or any(not policy.allows(one, user) for one in listed):
        return f"the policy does not allow {shown(uri, most=_LONGEST_URI)!r} to be read"
    return ""


_UNASKED = '{}. Nothing was sent: such a call needs approval, in a run that asks for it (approval "risky" or "always")'
_UNCONNECTED = (
    "agent {!r} is known from a manifest only, so its tools can be found but not called: "
    "connect it by an mcp.json with a server of that name"
)


def objection(
    tool_id: str,
    arguments: Mapping[str, Any],
    loaded: Loaded,
    user: User | None,
    fit_to: FitTo,
    *,
    agreed: bool,
    reads: bool,
) -> str:
    """Why a call must not be sent; empty if it may.

    Args:
        tool_id: The tool.
        arguments: Its arguments.
        loaded: The current catalog.
        user: The caller.
        fit_to: Validates the arguments.
        agreed: Whether a person has approved the call.
        reads: Whether the tool is a resource or a prompt.
    """
    if why := why_not(tool_id, loaded, user):
        return why
    tool = loaded.catalog.tool(tool_id)
    match connection := loaded.connections.get(tool.agent):
        case ServerConfig():
            fit = fit_to(tool.input_schema)
            unasked = _UNASKED.format(fit.unchecked) if fit.unchecked and not agreed else ""
            places = connection.callsheet.roots, tool.input_schema, arguments
            trouble = fit.misfit or unasked or outside(*places, folder=connection.cwd)
            return trouble or (hidden_resource(tool, arguments, loaded, user) if reads else "")
        case InProcess():
            # LangChain validates and converts the arguments of its own tools.
            return "" if tool.name in connection.tools else "the agent's connection does not hold this tool"
        case _:
            return _UNCONNECTED.format(tool.agent)
