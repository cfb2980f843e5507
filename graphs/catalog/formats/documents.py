"""JSON and YAML documents, read safely."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.text.regex import linear

_JSON_TYPES = {"tuple": "a list", "dictionary": "an object", "string": "a string", "boolean": "true or false"}
_LARGEST_ENV = 1_000_000
_NOT_BREAK = re.compile(r"[^\n]")


_STRING = r'("(?:[^"\\]|\\.)*")'
_COMMENT, _TRAILING = linear(rf"(?s){_STRING}|//[^\n]*|/\*.*?\*/"), linear(rf"(?s){_STRING}|,(\s*[\]}}])")


def read_json(path: Path) -> Any:
    """The content of a JSON file, which may have comments and trailing commas, as editors write them.

    Raises:
        CatalogError: The file cannot be read, or is not valid JSON.
    """
    text = ""
    try:
        text = path.read_text(encoding="utf-8-sig")
        with suppress(json.JSONDecodeError):
            return json.loads(text)
        # What is left out becomes blanks, so that an error has its place.
        text = _COMMENT.sub(lambda found: found[1] or _NOT_BREAK.sub(" ", found[0]), text)
        return json.loads(_TRAILING.sub(lambda found: found[1] or f" {found[2]}", text))
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        if path.suffix.lower() in (".yaml", ".yml", ".toml"):
            why = f"catalogs are JSON, not {path.suffix[1:].upper()}: write it as JSON"
        else:
            why = f"not valid JSON: {error.msg}, line {error.lineno} column {error.colno}"
        raise CatalogError(f"{path}: {why if text.strip() else 'the file is empty'}") from error
    except ValueError as error:
        raise CatalogError(f"{path}: holds a number that is too long to be read") from error
    except RecursionError as error:
        raise CatalogError(f"{path}: nested too deeply to be a catalog") from error
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from error


def read_env_file(path: Path) -> dict[str, str]:
    """The variables in a file of lines such as ``NAME=value``; nothing in a value is expanded.

    Raises:
        CatalogError: The file cannot be read, or has another line.
    """
    from dotenv.parser import parse_stream

    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_ENV:
            raise CatalogError(f"its envFile {path} is not a file of at most {_LARGEST_ENV // 1000:,} KB")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise CatalogError(f"its envFile {path} cannot be read: {error}") from error
    values: dict[str, str] = {}
    for line in parse_stream(StringIO(text)):
        if line.error or (line.key and line.value is None):
            raise CatalogError(f"its envFile {path} has a line that is not NAME=value: line {line.original.line}")
        values |= {line.key: line.value or ""} if line.key else {}
    return values


def wrong_field(error: Mapping[str, Any]) -> str:
    """A Pydantic error with JSON's names of types."""
    message = str(error["msg"]).replace("Input should be", "must be")
    for python, word in _JSON_TYPES.items():
        message = message.replace(f"a valid {python}", word)
    return f"{'.'.join(map(str, error['loc']))}: {message}"


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
