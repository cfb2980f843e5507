"""What a tool call gives back, and how the raw answer of an MCP server becomes that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from callsheet.graphs.mcp import clean

Kind = Literal["", "start", "timeout", "crash", "protocol", "tool", "too_large"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how large an exchange with a tool may grow.

    Attributes:
        start: Seconds for a server to start and greet.
        list: Seconds for it to list its tools.
        call: Seconds for one call.
        output: Characters of a result that are kept.
        message: Bytes of one message from a stdio server; a longer one ends its session.
    """

    start: float = 30.0
    list: float = 15.0
    call: float = 60.0
    output: int = 256_000
    message: int = 16_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call; a failure is data, never an exception.

    Attributes:
        text: The answer as text; images and other media as a short note.
        structured: The structured answer, if there is one.
        error: What went wrong, naming agent and tool; empty when nothing did.
        kind: The sort of trouble. ``too_large`` without an error is an answer that was cut.
        seconds: How long the call took.
    """

    text: str = ""
    structured: Any | None = None
    error: str = ""
    kind: Kind = ""
    seconds: float = 0.0


class Fault(Exception):  # noqa: N818 (a word of the field; it becomes data, not an error)
    """Why an exchange with a tool failed; becomes an ``Outcome`` before it leaves this package.

    Args:
        kind: The sort of trouble.
        message: What happened, without the names of agent and tool.
        unsent: Whether it is sure that the tool did not run.
    """

    def __init__(self, kind: Kind, message: str, *, unsent: bool = False) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.unsent = unsent


def failed(agent_id: str, tool: str, kind: Kind, message: str) -> Outcome:
    """The outcome of a call that failed, its error naming agent and tool."""
    return Outcome(error=f"agent {agent_id!r}, tool {tool!r}: {message}", kind=kind)


def outcome_of(agent_id: str, tool: str, result: Mapping[str, Any], limits: Limits) -> Outcome:
    """The raw result of ``tools/call``, whatever it holds, as an outcome."""
    structured = clean(result.get("structuredContent"))
    text = clean("\n".join(map(text_of_block, _blocks(result.get("content")))))
    if result.get("isError") is True:
        return capped(failed(agent_id, tool, "tool", text or "it failed without saying why"), limits)
    if not text and structured is not None:
        text = json.dumps(structured, ensure_ascii=False)
    return capped(Outcome(text=text, structured=structured), limits)


def capped(outcome: Outcome, limits: Limits) -> Outcome:
    """The outcome with its texts cut to ``limits.output`` characters, each cut saying the original size."""
    text, error = _cut(outcome.text, limits.output), _cut(outcome.error, limits.output)
    structured, kind = outcome.structured, outcome.kind
    if structured is not None:
        size = len(json.dumps(structured, ensure_ascii=False, default=str))
        if size > limits.output:
            structured = None
            text += f"\n[structured result left out: {size:,} characters, {limits.output:,} are allowed]"
    if not kind and (text is not outcome.text or error is not outcome.error):
        kind = "too_large"
    return replace(outcome, text=text, error=error, structured=structured, kind=kind)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut: the first {most:,} of {len(text):,} characters]"


def _blocks(content: object) -> list[Any]:
    return content if isinstance(content, list) else [] if content is None else [content]


def text_of_block(block: object) -> str:
    """One block of content as text: text as it is, anything else as a note of what it was."""
    match block:
        case str():
            return block
        case {"type": "text", "text": str() as text}:
            return text
        case {"type": "resource", "resource": {"text": str() as text}}:
            return text
        case {"type": "resource", "resource": dict() as resource}:
            return _note("resource", resource.get("mimeType"), resource.get("blob"))
        case {"type": "resource_link", "uri": uri}:
            return f"[resource {uri}]"
        case {"type": str() as kind, **rest}:
            media = rest.get("mimeType") or rest.get("mime_type")
            return _note(kind, media, rest.get("data") or rest.get("base64"))
        case _:
            return "[content of no known kind]"


def _note(kind: str, media: object, data: object) -> str:
    named = f"{kind} {media}" if media else f"{kind} content"
    return f"[{named}, {len(data) * 3 // 4:,} bytes]" if isinstance(data, str) else f"[{named}]"
