"""YAML documents, read safely."""

from __future__ import annotations

import json
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError

_SCALARS = (  # YAML 1.2, JSON schema: no dates, and "no" is a word
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", "n~\0"),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
)


def read_yaml(text: bytes | str, where: str, *, most: int = 20_000_000) -> Any:
    """The value of a YAML document of at most so many nodes, with the scalars of JSON and keys that are strings.

    Raises:
        CatalogError: It is empty, malformed, or stands for too many nodes through its aliases.
    """
    import yaml

    loader = _loader()(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise CatalogError(f"{where}: the file is empty")
        if _nodes(node, {}, most) > most:
            raise CatalogError(f"{where}: its YAML aliases expand to too many nodes: write them out")
        return loader.construct_document(node)
    except RecursionError as error:
        raise CatalogError(f"{where}: nested too deeply, or an alias within itself: it cannot be read") from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise CatalogError(f"{where}: not valid YAML: {' '.join(str(error).split())[:300]}") from error
    finally:
        loader.dispose()


def _nodes(node: Any, known: dict[int, int], most: int) -> int:
    """Nodes of a YAML document with its aliases written out; each anchor is counted once."""
    if (count := known.get(id(node))) is not None:
        return count
    if not isinstance(node.value, list):
        return 1
    # An alias within itself never ends; it is met here again before its count is known.
    known[id(node)] = most + 1
    parts = (part for item in node.value for part in (item if isinstance(item, tuple) else (item,)))
    count = known[id(node)] = min(1 + sum(_nodes(part, known, most) for part in parts), most + 1)
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
