"""The text of a step for one item."""

from __future__ import annotations

import json
from typing import Any

_LABEL = 200
_PLACE = "{item}"
_NAMES = ("name", "title", "id", "path", "key", "url")


def item_text(text: str, item: Any) -> str:
    """A step's text with an item in place of ``{item}``, or else at the end."""
    label = _label(item)
    return text.replace(_PLACE, label) if _PLACE in text else f"{text}: {label}"


def _label(item: Any) -> str:
    """A short label for an item: the item itself, or its name."""
    if isinstance(item, dict):
        item = next((item[name] for name in _NAMES if isinstance(item.get(name), str | int)), item)
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else f"{line[:_LABEL]}…"
