"""What is wrong with a file that should be a catalog, and how to cure it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SERVERS = "mcpServers"
_FORMS = "'mcpServers' (or 'servers'), 'callsheet' with 'agents', or a manifest with 'name' (or 'server') and 'tools'"
_REACHED_BY = ("command", "url", "serverUrl", "httpUrl", "documents", "a2a")
_IN_JSON_WORDS = {"tuple": "a list", "dictionary": "an object", "string": "a string", "boolean": "true or false"}


def no_json(path: Path, text: str, error: json.JSONDecodeError) -> str:
    """Why a file is not JSON; names the usual slips."""
    if not text.strip():
        return f"{path}: the file is empty"
    if path.suffix.lower() in (".yaml", ".yml", ".toml"):
        return f"{path}: catalogs are JSON, not {path.suffix[1:].upper()}: write it as JSON"
    cure = _slip(text, error.pos)
    return f"{path}: not valid JSON: {error.msg}, line {error.lineno} column {error.colno}{cure and f': {cure}'}"


def no_catalog(path: Path, document: object) -> str:
    """Why a JSON file is no catalog; names the key that was probably meant."""
    return f"{path}: not a catalog: expected {_FORMS}{_meant(document)}"


def wrong_field(error: Mapping[str, Any]) -> str:
    """One of Pydantic's errors in the words of JSON."""
    said = str(error["msg"]).replace("Input should be", "must be")
    for python, word in _IN_JSON_WORDS.items():
        said = said.replace(f"a valid {python}", word)
    return f"{'.'.join(map(str, error['loc']))}: {said}"


def _slip(text: str, position: int) -> str:
    rest, before = text[position:].lstrip(), text[:position].rstrip()
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments, take it away"
    closes = rest.startswith(("}", "]")) and before.endswith(",")
    if closes or (rest.startswith(",") and rest[1:].lstrip().startswith(("}", "]"))):  # from Python 3.13 on
        return "take away the comma after the last entry"
    return ""


def _meant(document: object) -> str:
    if not isinstance(document, dict):
        return ""
    for key in document:
        if key.lower().replace("_", "").replace("-", "") in ("mcpservers", "mcpserver", "servers"):
            return f"; for {key!r} write {_SERVERS!r}"
    entries = [entry for entry in document.values() if isinstance(entry, dict)]
    if entries and all(any(key in entry for key in _REACHED_BY) for entry in entries):
        return f'; put the servers into {{"{_SERVERS}": {{...}}}}'
    return ""
