"""The text of a specification: JSON or YAML, of a version that is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.text.regex import linear

LARGEST = 64_000_000
"""Bytes of the largest specification that is read."""
_MOST_NODES = 20_000_000
_VERSIONED = linear(
    r"""(?m)(?:^|[{,\s])["']?(?:openapi|swagger)["']?\s*:\s*["']?\d+\.\d+(?:\.\d+)?["']?\s*(?:[,}#]|$)"""
)
_YAML = (".yaml", ".yml")
_SCALARS = (  # YAML 1.2, JSON schema: no dates, and "no" is a word
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", "n~\0"),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
)


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

    Args:
        text: JSON or YAML, in UTF-8.
        where: Where it is from, for messages.

    Raises:
        CatalogError: It is too large, malformed, or of another version.
    """
    if len(text) > LARGEST:
        raise CatalogError(f"{where}: larger than {LARGEST // 1_000_000} MB: leave out what is not needed")
    document = _json(text, where) if text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else _yaml(text, where)
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


def _yaml(text: bytes, where: str) -> Any:
    import yaml

    loader = _loader()(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise CatalogError(f"{where}: the file is empty")
        if _nodes(node, {}) > _MOST_NODES:
            raise CatalogError(f"{where}: its YAML aliases stand for too many nodes: write out what they stand for")
        return loader.construct_document(node)
    except RecursionError as error:
        raise CatalogError(f"{where}: nested too deeply, or an alias within itself: no specification") from error
    except (yaml.YAMLError, ValueError) as error:
        raise CatalogError(f"{where}: not valid YAML: {' '.join(str(error).split())[:300]}") from error
    finally:
        loader.dispose()


def _nodes(node: Any, known: dict[int, int]) -> int:
    """Nodes of a YAML document with its aliases written out; each anchor is counted once."""
    if (count := known.get(id(node))) is not None:
        return count
    if not isinstance(node.value, list):
        return 1
    # An alias within itself never ends; it is met here again before its count is known.
    known[id(node)] = _MOST_NODES + 1
    parts = (part for item in node.value for part in (item if isinstance(item, tuple) else (item,)))
    count = known[id(node)] = min(1 + sum(_nodes(part, known) for part in parts), _MOST_NODES + 1)
    return count


def _loader() -> Any:
    """PyYAML's safe loader, in C where it was built so, with the scalars of JSON; keys are strings."""
    import re

    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            return {
                key if isinstance(key, str) else json.dumps(key, default=str): value
                for key, value in super().construct_mapping(node, deep=deep).items()
            }

    Loader.yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile("^<<$"))]}
    for tag, pattern, first in _SCALARS:
        compiled = re.compile(f"^(?:{pattern})$")
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", compiled, ["" if c == "\0" else c for c in first])
    return Loader
