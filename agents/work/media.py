"""Shows images, sounds and files in the results of tools to a model: as a content block or as a note."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, ToolMessage

from callsheet.agents.calls.outcome import outcome_in

_LARGEST = 3_500_000
_MOST = 16_000_000
"""Bytes of one medium, and of all in a conversation: providers refuse larger ones."""
_BASE64 = re.compile(
    r"(?:data:[\w.+-]+/[\w.+-]+;base64,)?[A-Za-z0-9+/_-]{60,}"
    r"(?:(?:\r?\n|\\r\\n|\\n)[A-Za-z0-9+/_-]{60,})*(?:(?:\r?\n|\\r\\n|\\n)[A-Za-z0-9+/_-]*)?={0,2}"
)
"""Base64 of both alphabets (RFC 4648), also in lines as of e-mail, whose ends are codes in JSON."""
_LINE_END = re.compile(r"\s|\\[rn]")
_PLAIN = str.maketrans("-_", "+/")
_SHORTEST = 120
_BEGINNING = 24
"""Characters of base64 that are decoded to look for a signature: a multiple of four."""


@dataclass(frozen=True, slots=True)
class _Format:
    """A format of media that providers take: how its bytes begin, and which field of a model's profile allows it.

    ``within`` is the field for content of a ``ToolMessage``; a model that takes the format and does not say otherwise
    takes it there too.
    """

    begins: tuple[bytes, ...]
    media: str
    block: Literal["image", "audio", "file"]
    allowed: str
    within: str = ""

    def fits(self, profile: Mapping[str, Any]) -> bool:
        """Returns whether a model with this profile takes it in the result of a tool."""
        return bool(profile.get(self.allowed)) and profile.get(self.within, True) is not False


_IMAGE: tuple[Literal["image"], str, str] = ("image", "image_inputs", "image_tool_message")
_FORMATS = (
    _Format((b"\x89PNG\r\n\x1a\n",), "image/png", *_IMAGE),
    _Format((b"\xff\xd8\xff",), "image/jpeg", *_IMAGE),
    _Format((b"GIF87a", b"GIF89a"), "image/gif", *_IMAGE),
    _Format((b"RIFF....WEBP",), "image/webp", *_IMAGE),
    _Format((b"RIFF....WAVE",), "audio/wav", "audio", "audio_inputs"),
    _Format((b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"), "audio/mpeg", "audio", "audio_inputs"),
    _Format((b"%PDF-",), "application/pdf", "file", "pdf_inputs", "pdf_tool_message"),
)
"""What a medium is, its bytes say: a provider refuses each request with an image that is none."""


def _format_of(content: bytes) -> _Format | None:
    """Returns the format whose signature begins these bytes; a dot in a signature stands for any byte."""
    for known in _FORMATS:
        for signature in known.begins:
            beginning = content[: len(signature)]
            pairs = zip(signature, beginning, strict=False)
            if len(beginning) == len(signature) and all(one in (b"."[0], other) for one, other in pairs):
                return known
    return None


def picture_type(content: bytes) -> str:
    """Returns the media type of a picture, by its bytes; empty for anything else."""
    known = _format_of(content)
    return known.media if known is not None and known.block == "image" else ""


def readable(text: str) -> str:
    """Returns the text with a note in place of each image, sound or PDF file that it holds as base64."""
    return _BASE64.sub(_noted, text) if len(text) > _BEGINNING else text


def _noted(match: re.Match[str]) -> str:
    data = _LINE_END.sub("", match[0].rpartition(",")[2])
    if len(data) < _SHORTEST:
        return match[0]
    with suppress(binascii.Error, ValueError):
        known = _format_of(base64.b64decode(data[:_BEGINNING].translate(_PLAIN)))
        if known:
            size = len(data.rstrip("=")) * 3 // 4
            return f"[{known.media}, {size:,} bytes as base64, which a reference passes on]"
    return match[0]


def with_media(messages: Sequence[AnyMessage], model: BaseChatModel) -> list[AnyMessage]:
    """Returns a conversation for a model, in which media of results are content blocks if the model accepts them.

    Otherwise a note in the text names the file of each medium. A medium stays in the conversation as long as its file
    exists, so that the beginning of the conversation is the same in each turn. Reads files.
    """
    profile: Mapping[str, Any] = model.profile or {}
    told: list[AnyMessage] = []
    left = _MOST
    for message in messages:
        outcome = outcome_in(message)
        # Answers of tools of the catalog only: those of an agent's own tools are not ours to change.
        if not isinstance(message, ToolMessage) or not isinstance(message.content, str) or not outcome.tool:
            told.append(message)
            continue
        text = readable(message.content)
        blocks: list[Any] = []
        for stored in outcome.media:
            if stored.size > min(left, _LARGEST):
                continue
            block = _block(Path(stored.path), profile)
            if block:
                left -= stored.size
                blocks.append(block)
        content: Any = [{"type": "text", "text": text}, *blocks] if blocks else text
        told.append(message if content == message.content else message.model_copy(update={"content": content}))
    return told


def _block(file: Path, profile: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns a file as a standard content block.

    None if the model does not take it, or if it is not there any more.
    """
    if not any(known.fits(profile) for known in _FORMATS):
        return None
    try:
        content = file.read_bytes()
    except OSError:
        return None
    known = _format_of(content)
    if known is None or not known.fits(profile):
        return None
    data = base64.b64encode(content).decode()
    block = {"type": known.block, "base64": data, "mime_type": known.media}
    return {**block, "filename": file.name} if known.block == "file" else block


def has_media(messages: Sequence[AnyMessage]) -> bool:
    """Returns whether a result has media as content blocks."""
    return any(isinstance(message, ToolMessage) and isinstance(message.content, list) for message in messages)


def without_media(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Returns the conversation with notes in place of media, for a provider that has refused a medium."""
    told: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage) and isinstance(message.content, list):
            message = message.model_copy(update={"content": message.text})  # noqa: PLW2901
        told.append(message)
    return told
