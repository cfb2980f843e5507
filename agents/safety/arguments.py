"""Validates arguments against a tool's schema and allowed folders, with errors that a model can correct."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_MOST_SAID, _LONGEST = 3, 300
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATHS = re.compile(
    r"(?i)(^|[_\W])(paths?|files?|filenames?|dirs?|director(y|ies)|folders?|cwd|repo(sitory)?)($|[_\W])|path$"
)


@dataclass(frozen=True, slots=True)
class Fit:
    """What does not fit in arguments, and why they could not be validated; both are empty if they fit."""

    misfit: str = ""
    unchecked: str = ""


FitTo = Callable[[Mapping[str, Any]], Fit]
"""Validates the arguments of one call against a schema."""


def fit_of(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Fit:
    """Validates arguments against the JSON Schema of an object; see ``checked``."""
    from callsheet.agents.safety.schema_validation import checked

    found = checked(schema, dict(arguments))
    if found.unchecked:
        return Fit(unchecked=f"the arguments were not checked: {found.unchecked}")
    if not found.errors:
        return Fit()
    said = [_in_words(error) for error in found.errors[:_MOST_SAID]]
    more = f"; and {len(found.errors) - _MOST_SAID} more" if len(found.errors) > _MOST_SAID else ""
    return Fit(f"the arguments do not fit: {'; '.join(said)}{more}. Nothing was sent: correct them and call again")


def fit_of_call(arguments: Mapping[str, Any]) -> FitTo:
    """``fit_of`` for the arguments of one call, cached as long as the schema is the same."""
    known: list[tuple[Mapping[str, Any], Fit]] = []

    def fit(schema: Mapping[str, Any]) -> Fit:
        if not known or known[0][0] != schema:
            known[:] = [(schema, fit_of(schema, arguments))]
        return known[0][1]

    return fit


def misfits(schema: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """What does not fit a schema, in words; empty if everything fits or could not be validated."""
    from callsheet.agents.safety.schema_validation import checked

    return [_in_words(error) for error in checked(schema, dict(values)).errors[:_MOST_SAID]]


def _in_words(error: Any) -> str:
    where = ".".join(map(str, error.absolute_path))
    text = error.message if len(error.message) <= _LONGEST else f"{error.message[:_LONGEST]}…"
    return f"{where}: {text}" if where else str(text)


def outside(
    roots: Sequence[str], schema: Mapping[str, Any], arguments: Mapping[str, Any], *, folder: str | None = None
) -> str:
    """Which argument is a path outside of these folders, after following links; empty if none is.

    Args:
        roots: The allowed folders; without any, every place is allowed.
        schema: JSON Schema of the arguments, whose formats may mark paths.
        arguments: The arguments.
        folder: Base of relative paths: the server's working directory, by default this process's.
    """
    if not roots:
        return ""
    allowed = [_real(root, folder) for root in roots]
    formats = {name for name, spec in _properties(schema).items() if _PATHS.search(str(spec.get("format", "")))}
    for name, value in _texts("", arguments):
        top = name.split(".", 1)[0]
        if (path := _path(name, value, folder, named=top in formats)) is None:
            continue
        place = _real(path, folder)
        if not any(place.is_relative_to(root) for root in allowed):
            return (
                f"{name or 'a name'}: {value!r} is outside of the folders that this server may use "
                f"({', '.join(map(str, allowed))}). Nothing was sent: give a place in them"
            )
    return ""


def _path(name: str, value: str, folder: str | None, *, named: bool) -> str | None:
    """The text as a path, if its argument's name or an existing place suggests one."""
    if value.lower().startswith("file:"):
        return unquote(urlsplit(value).path)
    if "\0" in value or "://" in value:
        return None
    if named or _PATHS.search(_CAMEL.sub("_", name.rsplit(".", 1)[-1])):
        return value
    looks = value.startswith(("/", "~", "..")) or "/../" in value or Path(value).is_absolute()
    return value if looks and "\n" not in value and _is_place(value, folder) else None


def _is_place(value: str, folder: str | None) -> bool:
    """Whether a path exists or could be created: in an existing folder other than ``/``."""
    try:
        expanded = Path(value).expanduser()
        if (Path(folder or Path.cwd()) / expanded).exists():
            return True
        return expanded.is_absolute() and len(expanded.parts) > 2 and expanded.parent.is_dir()
    except (OSError, RuntimeError, ValueError):
        return False


def _real(path: str, folder: str | None) -> Path:
    try:
        expanded = Path(path).expanduser()
    except RuntimeError:  # the home of an unknown user
        expanded = Path(path)
    return Path(os.path.realpath(Path(folder or Path.cwd()) / expanded))


def _properties(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    found = schema.get("properties")
    return {name: spec for name, spec in found.items() if isinstance(spec, dict)} if isinstance(found, dict) else {}


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield name, value
        case dict():
            for key, item in value.items():
                yield "", str(key)
                yield from _texts(f"{name}.{key}" if name else str(key), item)
        case list() | tuple():
            for item in value:
                yield from _texts(name, item)
