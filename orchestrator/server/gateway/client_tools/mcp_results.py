"""Answers of tools as results of MCP."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage
from mcp import types

_LARGEST = 10_000_000  # bytes of one image or sound


def result_of(answer: ToolMessage, *, text_only: bool = False) -> types.CallToolResult:
    """The answer of a ``BoundTool``: text, images and sounds, the structured result, and how a failed call ended.

    Reads files: images and sounds were stored as files when the answer came.

    Args:
        answer: The answer.
        text_only: Leave out the structured result, which says the same again for a resource.
    """
    artifact: dict[str, Any] = answer.artifact if isinstance(answer.artifact, dict) else {}
    content: list[Any] = [types.TextContent(type="text", text=answer.text)]
    content += filter(None, map(_medium, artifact.get("media") or ()))
    failed = answer.status == "error"
    ended = {f"callsheet/{name}": artifact[name] for name in ("kind", "effect") if failed and artifact.get(name)}
    structured = artifact.get("structured")
    return types.CallToolResult(
        content=content,
        structured_content=structured if isinstance(structured, dict) and not text_only else None,
        is_error=failed,
        _meta=ended or None,
    )


def error_result(message: str) -> types.CallToolResult:
    """An error that a model can act on."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def text_result(text: str) -> types.CallToolResult:
    """A plain text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _medium(kept: dict[str, Any]) -> types.ImageContent | types.AudioContent | None:
    kind = str(kept["media"]).partition("/")[0]
    if kind not in ("image", "audio") or kept["size"] > _LARGEST:
        return None  # the text says where it is
    data = base64.b64encode(Path(kept["path"]).read_bytes()).decode()
    if kind == "image":
        return types.ImageContent(type="image", data=data, mime_type=kept["media"])
    return types.AudioContent(type="audio", data=data, mime_type=kept["media"])
