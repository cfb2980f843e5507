"""JSON that a small model writes as text: an object, or tool calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_MOST_TRIED = 64
"""Maximum number of positions tried as JSON, and of list entries, so that no text takes long."""
_ARGS = ("arguments", "parameters", "args")
_READ = json.JSONDecoder()


def written_object(text: str) -> dict[str, Any] | None:
    """The JSON object from the first brace of a text to its last; None if that is not one complete object."""
    try:
        written = json.loads(text[text.find("{") : text.rfind("}") + 1]) if "{" in text else None
    except (ValueError, RecursionError):
        return None
    return written if isinstance(written, dict) else None


def written_calls(text: str, names: Collection[str]) -> list[dict[str, Any]]:
    """The calls of these tools in a text, in order, without repetitions; other JSON is ignored.

    Small models write ``{"name": ..., "arguments": {...}}``: with or without other words around it, several in a row,
    in a list, with the arguments as a JSON string, or inside ``{"function": ...}``.

    Returns:
        ``name`` and ``args`` of each call.
    """
    calls: list[dict[str, Any]] = []
    for value in _values(text):
        for written in value[:_MOST_TRIED] if isinstance(value, list) else [value]:
            call = _call(written, names)
            if call and call not in calls:
                calls.append(call)
    return calls


def written_call(text: str, names: Collection[str]) -> dict[str, Any] | None:
    """The first of these calls; None without any."""
    return next(iter(written_calls(text, names)), None)


def _values(text: str) -> Iterator[Any]:
    """The outermost JSON objects and lists in a text, from left to right."""
    at = 0
    for _ in range(_MOST_TRIED):
        starts = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
        if not starts:
            return
        try:
            value, at = _READ.raw_decode(text, min(starts))
            yield value
        except (ValueError, RecursionError):
            at = min(starts) + 1


def _call(written: Any, names: Collection[str]) -> dict[str, Any] | None:
    if isinstance(written, Mapping) and isinstance(written.get("function"), Mapping):
        written = written["function"]
    if not isinstance(written, Mapping):
        return None
    name, args = written.get("name"), next((written[key] for key in _ARGS if key in written), None)
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            return None
    return {"name": name, "args": args} if isinstance(name, str) and name in names and isinstance(args, dict) else None
