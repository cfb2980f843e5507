"""Calls of which nobody knows whether they took effect: a person decides, nothing repeats them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import AnyMessage, ToolMessage

from callsheet.agents.tools.binding import BoundTool


def in_doubt(messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool]) -> str:
    """What is in doubt after the last calls of a worker, and what to do about it; empty if nothing is.

    Args:
        messages: The worker's conversation.
        tools: What it holds, by the names that its model sees.
    """
    said = []
    for message in messages:
        if not isinstance(message, ToolMessage) or not isinstance(message.artifact, dict):
            continue
        tool = tools.get(message.name or "")
        if message.artifact.get("effect") == "unknown" and tool is not None and not tool.repeatable:
            said.append(message.text)
    if not said:
        return ""
    return "\n".join(
        (*said, "The outcome is unknown: it is not called again before somebody has looked whether it took effect.")
    )
