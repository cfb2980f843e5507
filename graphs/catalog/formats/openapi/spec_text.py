"""The text of a specification: JSON or YAML, of a version that is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.yaml_text import read_yaml
from callsheet.graphs.text.regex import linear

LARGEST = 64_000_000
"""Bytes of the largest specification that is read."""
_VERSIONED = linear(
    r"""(?m)(?:^|[{,\s])["']?(?:openapi|swagger)["']?\s*:\s*["']?\d+\.\d+(?:\.\d+)?["']?\s*(?:[,}#]|$)"""
)
_YAML = (".yaml", ".yml")


def is_specification(path: Path) -> bool:
    """Whether a file may be an OpenAPI specification: ``parsed`` says for sure."""
    if path.suffix.lower() not in (".json", *_YAML):
        return False
    try:
        return _VERSIONED.search(path.read_bytes().decode("utf-8", "replace")) is not None
    except OSError:
        return False  # whoever reads it next says why it cannot be read


def parsed(text: bytes, where: str) -> dict[str, Any]:
    """The document of a specification.

    Raises:
        CatalogError: It is too large, malformed, or of another version.
    """
    if len(text) > LARGEST:
        raise CatalogError(f"{where}: larger than {LARGEST // 1_000_000} MB: leave out what is not needed")
    document = _json(text, where) if text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else read_yaml(text, where)
    if not isinstance(document, dict):
        raise CatalogError(f"{where}: not an OpenAPI specification: it should be an object with 'openapi' and 'paths'")
    _check_version(document, where)
    return document


def _check_version(document: Mapping[str, Any], where: str) -> None:
    if "swagger" in document:
        cure = "convert it to OpenAPI 3, for example with `npx swagger2openapi` or at editor.swagger.io"
        raise CatalogError(f"{where}: Swagger {document['swagger']} is not read: {cure}")
    version = str(document.get("openapi"))
    if not version.startswith(("3.0", "3.1")):
        raise CatalogError(f"{where}: OpenAPI {version} is not read: give a specification of version 3.0 or 3.1")
    if not isinstance(document.get("paths", {}), dict):
        raise CatalogError(f"{where}: 'paths' must be an object of operations by path")


def _json(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise CatalogError(f"{where}: nested too deeply to be a specification") from error
    except ValueError as error:
        raise CatalogError(f"{where}: not valid JSON: {error}") from error
