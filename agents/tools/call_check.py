"""What is checked right before a call is sent: policy, arguments, folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callsheet.agents.safety.arguments import FitTo, outside
from callsheet.agents.safety.definition_check import hidden_resource, why_not
from callsheet.agents.tools.in_process import InProcess
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import Loaded
from callsheet.graphs.trust.policy import User

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
