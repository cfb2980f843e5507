"""A tool call that a small model wrote as JSON text."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any


def written_call(text: str, names: Collection[str]) -> dict[str, Any] | None:
    """The name and the args of a call of one of these tools, if a text holds one from its first brace to its last."""
    try:
        written = json.loads(text[text.find("{") : text.rfind("}") + 1]) if "{" in text else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(written, dict):
        return None
    name, args = written.get("name"), written.get("arguments", written.get("parameters", written.get("args")))
    return {"name": name, "args": args} if isinstance(name, str) and name in names and isinstance(args, dict) else None
