"""Calls with an unknown outcome: a person decides, and nothing repeats them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import AnyMessage, ToolMessage

from callsheet.agents.tools.binding import RUN_PROGRAM, BoundTool


def in_doubt(messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool]) -> str:
    """The calls of a worker with an unknown outcome, and what to do about them; empty if there are none."""
    said = []
    for message in messages:
        if not isinstance(message, ToolMessage) or not isinstance(message.artifact, dict):
            continue
        tool = tools.get(message.name or "")
        unrepeatable = message.name == RUN_PROGRAM or (tool is not None and not tool.repeatable)
        if message.artifact.get("effect") == "unknown" and unrepeatable:
            said.append(message.text)
    if not said:
        return ""
    return "\n".join(
        (*said, "The outcome is unknown: the call is not repeated until a person has checked whether it took effect.")
    )
