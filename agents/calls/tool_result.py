"""The outcome of a tool call, made from the raw answer of an MCP server."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import mimetypes
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Outcome, StoredContent, failed_outcome
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.storage import cache_folder, private_folder
from callsheet.graphs.text.hidden import visible
from callsheet.graphs.text.unicode import clean

Keep = Callable[[bytes, str], StoredContent | None]
"""Stores bytes of a media type as a file; returns None on failure."""


_MOST_BLOCKS = 20_000
"""Content blocks of one result that are read: each costs time and memory, however small it is."""


def outcome_of(
    agent_id: str, tool: str, result: Mapping[str, Any], limits: Limits, keep: Keep | None = None
) -> Outcome:
    """Converts the raw result of ``tools/call``, valid or not, to an outcome.

    The structured result follows the text, as JSON, unless the text is these data itself. A result with more than
    20,000 content blocks is refused; texts that follow each other in a large message are one block.
    """
    try:
        structured = clean(result.get("structuredContent"), text=visible)
    except CatalogError as error:
        return failed_outcome(agent_id, tool, "protocol", f"its structured result is {error}", "reported")
    content = result.get("content")
    if isinstance(content, list) and len(content) > _MOST_BLOCKS:
        many = f"its result has {len(content):,} content blocks, {_MOST_BLOCKS:,} are read at most"
        return failed_outcome(agent_id, tool, "too_large", many, "reported")
    media = Media(keep)
    text = media.text_of(content)
    structured = media.noted(structured)
    told = list[Any]()
    if structured is not None:  # otherwise there is nothing to compare, and the readings of many blocks cost much
        told = readings([visible(media.noted(one)) for one in _texts_in(content)], media.noted(content))
    text = with_data(visible(media.noted(text)), structured, limits, told=told)
    if result.get("isError") is True:
        outcome = failed_outcome(agent_id, tool, "tool", text or "it failed without saying why", "reported")
        return cap_texts(outcome.model_copy(update={"media": tuple(media.stored)}), limits, keep)
    return cap_texts(Outcome(text=text, structured=structured, media=tuple(media.stored)), limits, keep)


def _texts_in(content: object) -> list[str]:
    """Returns the texts of content blocks, also of embedded resources, each as it was sent."""
    texts: list[str] = []
    for block in content if isinstance(content, list) else [content]:
        match block:
            case str() as text:
                texts.append(text)
            case {"type": "text", "text": str() as text} | {"type": "resource", "resource": {"text": str() as text}}:
                texts.append(text)
    return texts


def readings(texts: Sequence[str], blocks: object = None) -> list[Any]:
    """Returns all interpretations of an answer as data: its texts, as they are and as JSON, and its blocks."""
    said: list[Any] = [*blocks, blocks] if isinstance(blocks, list) and blocks else []
    if texts:
        parsed = [_parsed(text) for text in texts]
        said += [*texts, *parsed, list(texts), parsed]
    return said


def with_data(text: str, data: Any, limits: Limits, *, told: Sequence[Any]) -> str:
    """Appends data as JSON to the text of a result, unless the text says the same already.

    ``told`` are the ``readings`` of the text.
    """
    written = "" if data is None else json.dumps(data, ensure_ascii=False)
    if not written or (told and (len(written) > limits.output or _is_told(told, data))):
        return text
    return "\n".join(filter(None, (text, written)))


def data_beside(text: str, structured: Any) -> Any:
    """Returns the structured result that follows other text in a result; None if there is none."""
    return structured if text.endswith(f"\n{json.dumps(structured, ensure_ascii=False)}") else None


def _is_told(told: Sequence[Any], data: Any) -> bool:
    """Returns whether one of these readings is the data.

    An object with one field is told by its value: the SDKs wrap what is no object in one (``{"result": ...}``), and
    servers of files send ``{"content": ...}`` beside the content.
    """
    meant = [data]
    if isinstance(data, dict) and len(data) == 1:
        meant += data.values()
    return any(_same(one, wanted) for one in told for wanted in meant)


def _parsed(text: str) -> Any:
    """Returns the data that a text is as JSON, cleaned like a structured result; the text itself if it is none."""
    try:
        return clean(json.loads(text), text=visible)
    except (ValueError, RecursionError):  # a CatalogError, which is a ValueError, if it is nested too deeply
        return text


def _same(one: Any, other: Any) -> bool:
    """Returns whether two values are the same data of JSON: 1 is 1.0, and neither is true."""
    match one, other:
        case (dict(), dict()):
            return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
        case (list(), list()):
            return len(one) == len(other) and all(map(_same, one, other))
        case (bool(), _) | (_, bool()):
            return one is other
        case _:
            return bool(one == other)


def cap_texts(outcome: Outcome, limits: Limits, keep: Keep | None = None) -> Outcome:
    """Cuts the texts of an outcome to ``limits.output`` characters; the full texts are stored as files."""
    most = limits.output
    files = [*outcome.media]

    def stored(text: str, media: str) -> str:
        file = keep(text.encode("utf-8", "replace"), media) if keep else None
        files.extend([file] if file else [])
        return f"; all of it is in {file.path}" if file else ""

    def cut(text: str) -> str:
        if len(text) <= most:
            return text
        return f"{text[:most]}\n[cut: the first {most:,} of {len(text):,} characters{stored(text, 'text/plain')}]"

    text = cut(outcome.text)
    error = cut(outcome.error)
    structured = outcome.structured
    whole = "" if structured is None else json.dumps(structured, ensure_ascii=False, default=str)
    if len(whole) > most:
        structured = None
        where = stored(whole, "application/json")
        text += f"\n[structured result left out: {len(whole):,} characters, {most:,} are allowed{where}]"
    is_whole = (text, error) == (outcome.text, outcome.error)
    kind = outcome.kind or ("" if is_whole else "too_large")
    changes = {"text": text, "error": error, "structured": structured, "kind": kind, "media": tuple(files)}
    return outcome.model_copy(update=changes)


def text_of(content: object, keep: Keep | None = None) -> tuple[str, tuple[StoredContent, ...]]:
    """Converts content blocks to text; their media are stored as files."""
    media = Media(keep)
    return media.text_of(content), tuple(media.stored)


_SHORTEST = 16
"""Characters of base64 that are looked for in texts: shorter ones may be words."""


class Media:
    """Stores the media of one result as files, and puts a note in place of each, wherever it occurs.

    Attributes:
        stored: The files.
    """

    def __init__(self, keep: Keep | None = None) -> None:
        self.stored: list[StoredContent] = []
        self._keep = keep
        self._notes: dict[str, str] = {}
        self._short: dict[tuple[str, str], str] = {}

    def text_of(self, content: object) -> str:
        """Converts content blocks to text: texts stay unchanged, anything else becomes a note."""
        blocks = content if isinstance(content, list) else [] if content is None else [content]
        return "\n".join([self._text_of_block(block) for block in blocks])

    def noted(self, value: Any) -> Any:
        """Returns a value with notes in place of media."""
        self._find(value)  # all of them first: a field may repeat what a later one says is a medium
        longest_first = sorted(self._notes, key=len, reverse=True)  # one may be a part of another
        return self._replaced(value, longest_first)

    def _find(self, value: Any) -> None:
        match value:
            case {"type": "image" | "audio" | "video" | "file" as kind, **rest}:
                self._note_block(kind, rest)
            case {"blob": str() as data, "mimeType": str() as media}:
                self._note("resource", media, data)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._find(inner)

    def _replaced(self, value: Any, longest_first: Sequence[str]) -> Any:
        match value:
            case str():
                for data in longest_first:
                    value = value.replace(data, self._notes[data])
                return value
            case list():
                return [self._replaced(item, longest_first) for item in value]
            case dict():
                return {key: self._replaced(item, longest_first) for key, item in value.items()}
        return value

    def _text_of_block(self, block: object) -> str:
        match block:
            case str():
                return block
            case {"type": "text", "text": str() as text}:
                return text
            case {"type": "resource", "resource": {"text": str() as text, **rest}}:
                return f"{f'[resource {uri}]' if (uri := rest.get('uri')) else ''}\n{text}".removeprefix("\n")
            case {"type": "resource", "resource": dict() as resource}:
                kind = f"resource {uri}" if (uri := resource.get("uri")) else "resource"
                return self._note(kind, resource.get("mimeType"), resource.get("blob"))
            case {"type": "resource_link", "uri": uri, **rest}:
                size = f"{size:,} bytes" if isinstance(size := rest.get("size"), int) else ""
                about = (*(rest.get(name) for name in ("name", "title", "description", "mimeType")), size)
                told = "; ".join(" ".join(one.split()) for one in about if isinstance(one, str) and one)
                return f"[resource {uri}{f': {told}' if told else ''}]"
            case {"type": str() as kind, **rest}:
                return self._note_block(kind, rest)
            case _:
                return "[content of no known kind]"

    def _note_block(self, kind: str, rest: Mapping[Any, Any]) -> str:
        """Returns the note for a block in the form of MCP or of LangChain."""
        media = rest.get("mimeType") or rest.get("mime_type")
        return self._note(kind, media, rest.get("data") or rest.get("base64"))

    def _note(self, kind: str, media: object, data: object) -> str:
        """Stores a medium, unless it is stored already, and returns the note for it."""
        named = f"{kind} {media}" if media else f"{kind} content"
        if not isinstance(data, str):
            return f"[{named}]"
        known = self._notes.get(data) or self._short.get((named, data))
        if known:
            return known
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            content = data.encode("utf-8", "replace")
        kept = self._keep(content, str(media or "application/octet-stream")) if self._keep else None
        where = f": {kept.path}" if kept else ""
        note = f"[{named}, {len(content):,} bytes{where}]"
        if kept:
            self.stored.append(kept)
        if len(data) >= _SHORTEST:
            self._notes[data] = note
        else:
            self._short[named, data] = note
        return note


_WEEK = 7 * 86_400.0
_LARGEST = 16_000_000
"""Bytes of a stored file that is read at once."""
_TEXTS = {"text/plain": ".txt", "application/json": ".json"}


class KeptResults:
    """Stores results of runs in files that only the user can read, in one folder per run.

    A folder is removed after seven days without a new file. All folders are by default in ``results`` in
    ``CALLSHEET_HOME``, otherwise in the user's cache.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._swept = False

    def of(self, run_id: str, agent_id: str, tool: str) -> Keep:
        """Returns a function that stores the files of one call."""

        def keep(content: bytes, media: str) -> StoredContent | None:
            with suppress(OSError):  # a full disk loses the file, not the result
                return StoredContent(
                    path=self._write(run_id, f"{agent_id}-{tool}", content, media), media=media, size=len(content)
                )
            return None

        return keep

    def read(self, path: str) -> bytes | None:
        """Returns the content of a file that was stored here; None for any other path, and for a deleted file."""
        base = self._folder or cache_folder() / "results"
        file = Path(path)
        try:
            if file.resolve(strict=True).parent.parent != base.resolve() or file.stat().st_size > _LARGEST:
                return None
            return file.read_bytes()
        except OSError:
            return None

    def _write(self, run_id: str, name: str, content: bytes, media: str) -> str:
        base = self._folder or cache_folder() / "results"
        self._sweep(base)
        folder = base / (run_id if run_id.isalnum() else hashlib.sha256(run_id.encode()).hexdigest()[:32])
        private_folder(folder)
        ending = _TEXTS.get(media) or mimetypes.guess_extension(media.partition(";")[0].strip()) or ".bin"
        plain = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)[:80]
        handle, path = tempfile.mkstemp(ending, f"{plain}-", folder)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return path

    def _sweep(self, base: Path) -> None:
        if self._swept or not base.is_dir():
            return
        self._swept = True
        for folder in base.iterdir():
            with suppress(OSError):
                if folder.stat().st_mtime < time.time() - _WEEK:
                    shutil.rmtree(folder, ignore_errors=True)
