"""Reads JSON files, and says what is wrong with files that are not valid catalogs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError

_SERVERS = "mcpServers"
_FORMS = "'mcpServers' (or 'servers'), 'callsheet' with 'agents', or a manifest with 'name' (or 'server') and 'tools'"
_SERVER_KEYS = ("command", "url", "serverUrl", "httpUrl", "documents", "a2a", "openapi")
_JSON_TYPES = {"tuple": "a list", "dictionary": "an object", "string": "a string", "boolean": "true or false"}


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        CatalogError: The file cannot be read, or is not valid JSON.
    """
    text = ""
    try:
        return json.loads(text := path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise CatalogError(_invalid_json(path, text, error)) from error
    except ValueError as error:
        raise CatalogError(f"{path}: holds a number that is too long to be read") from error
    except RecursionError as error:
        raise CatalogError(f"{path}: nested too deeply to be a catalog") from error
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from error


def no_catalog(path: Path, document: object) -> str:
    """Why a JSON file is not a catalog; suggests the correct key."""
    return f"{path}: not a catalog: expected {_FORMS}{_key_hint(document)}"


def wrong_field(error: Mapping[str, Any]) -> str:
    """A Pydantic error with JSON's names of types."""
    message = str(error["msg"]).replace("Input should be", "must be")
    for python, word in _JSON_TYPES.items():
        message = message.replace(f"a valid {python}", word)
    return f"{'.'.join(map(str, error['loc']))}: {message}"


def _invalid_json(path: Path, text: str, error: json.JSONDecodeError) -> str:
    """Why a file is not valid JSON; names common mistakes."""
    if not text.strip():
        return f"{path}: the file is empty"
    if path.suffix.lower() in (".yaml", ".yml", ".toml"):
        return f"{path}: catalogs are JSON, not {path.suffix[1:].upper()}: write it as JSON"
    hint = _syntax_hint(text, error.pos)
    return f"{path}: not valid JSON: {error.msg}, line {error.lineno} column {error.colno}{hint and f': {hint}'}"


def _syntax_hint(text: str, position: int) -> str:
    rest, before = text[position:].lstrip(), text[:position].rstrip()
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments: remove it"
    trailing = rest.startswith(("}", "]")) and before.endswith(",")
    if trailing or (rest.startswith(",") and rest[1:].lstrip().startswith(("}", "]"))):  # from Python 3.13 on
        return "remove the comma after the last entry"
    return ""


def _key_hint(document: object) -> str:
    if not isinstance(document, dict):
        return ""
    for key in document:
        if key.lower().replace("_", "").replace("-", "") in ("mcpservers", "mcpserver", "servers"):
            return f"; for {key!r} write {_SERVERS!r}"
    entries = [entry for entry in document.values() if isinstance(entry, dict)]
    if entries and all(any(key in entry for key in _SERVER_KEYS) for entry in entries):
        return f'; put the servers into {{"{_SERVERS}": {{...}}}}'
    return ""
