"""Checks that path arguments stay inside the folders that a server may use, however the server interprets them.

Servers differ: some strip a text, decode it, expand it, take it for an address, or resolve ``..`` before they open it.
So a text is checked in every form that a server might open.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from callsheet.agents.calls.refusal import Refusal
from callsheet.graphs.text.hidden import visible
from callsheet.graphs.text.unicode import normalized

_LONGEST = 4_096  # PATH_MAX of Linux: a longer text cannot be opened as it stands
_MOST_READINGS = 4
_LONG = 4 * _LONGEST  # of a longer text, the readings are not combined: it is hardly a path, and each costs time
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))  # all that `str.strip` removes
_AROUND = f"{_BLANKS}'\"`<>"
_ADDRESS = re.compile(r"(?i)(?P<scheme>[a-z][a-z0-9+.-]*):(?://(?P<host>[^/]*))?(?P<path>.*)", re.DOTALL)
_IGNORED_IN_ADDRESSES = re.compile(r"[\t\r\n]")
_HERE = ("", "localhost")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_AFTER_PATH = re.compile(r"[?#]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATH_NAMES = re.compile(
    r"(?i)(^|[_\W])(paths?|files?|filenames?|dirs?|director(y|ies)|folders?|cwd|repo(sitory)?)($|[_\W])|path$"
)


@dataclass(frozen=True, slots=True)
class _Folders:
    """The folder in which relative paths start, and the folders that are allowed, without links."""

    start: str
    allowed: tuple[Path, ...]

    def holds(self, place: Path) -> bool:
        return any(place.is_relative_to(root) for root in self.allowed)


def outside(
    roots: Sequence[str], schema: Mapping[str, object], arguments: Mapping[str, object], *, folder: str | None = None
) -> Refusal | None:
    """Returns what is wrong with an argument that is a path outside of these folders; None if none is.

    A text whose argument is a path by its name, or by a format in ``schema``, must be inside in every form. Any other
    text must not lead to a place outside that exists or, if it is absolute, could be created. Relative paths start at
    ``folder``, by default this process's, and may start at any root.
    """
    if not roots:
        return None
    start = folder or str(Path.cwd())
    allowed: list[Path] = []
    for root in roots:
        allowed += _places(start, _expanded(root))[:1]
    folders = _Folders(start, tuple(allowed))
    formats = _path_formats(schema)
    for name, value in _texts("", arguments):
        argument = name.partition(".")[0]
        key = name.rpartition(".")[2]
        is_path = argument in formats or bool(_PATH_NAMES.search(_CAMEL.sub("_", key)))
        if _leaves(value, folders, is_path=is_path):
            where = f"outside of the folders that this server may use ({', '.join(map(str, allowed))})"
            return Refusal(f"{name or 'a name'}: {value!r} is {where}. Nothing was sent: give a path inside them")
    return None


def _path_formats(schema: Mapping[str, object]) -> set[str]:
    """Returns the arguments whose format in a schema is that of a path."""
    properties = schema.get("properties")
    names: set[str] = set()
    for name, spec in properties.items() if isinstance(properties, dict) else ():
        if isinstance(spec, dict) and _PATH_NAMES.search(str(spec.get("format", ""))):
            names.add(name)
    return names


def _leaves(text: str, folders: _Folders, *, is_path: bool) -> bool:
    guesses = _forms(text, (*_SPELLINGS, *_CUTS))
    certain = _forms(text, _SPELLINGS) if is_path else {}
    for guess in guesses:
        for path in _file_paths(guess):
            certain |= _forms(path, _SPELLINGS)
    for form in certain:
        places = _places(folders.start, form)
        if not places or not all(map(folders.holds, places)):
            return True
    bases = dict.fromkeys((folders.start, *map(str, folders.allowed)))
    stripped = _stripped(text)
    can_create = not stripped.startswith("\\")  # "\\var\\epsilon" is no path to a folder
    for guess in guesses:
        # "/?q=1", "\\.\\./" and "%20" are no paths, although each can be read as "/", or as the present folder.
        if guess != stripped and os.path.normpath(guess) in ("/", "//", "."):
            continue
        if any(_leads_outside(guess, base, folders, can_create=can_create) for base in bases):
            return True
    return False


def _leads_outside(form: str, base: str, folders: _Folders, *, can_create: bool) -> bool:
    """Returns whether a possible path leads outside, to a place that exists or (if absolute) can be created."""
    can_create = can_create and form.startswith("/") and "\n" not in form
    joined = _joined(base, form)
    if len(joined) > _LONGEST and len(os.path.normpath(joined)) > _LONGEST:
        return False
    if not can_create and ".." not in form and not _exists(Path(joined)):
        return False  # most texts: nothing is there, and nothing could be
    for place in _places(base, form):
        is_creatable = can_create and len(place.parts) > 2 and _exists(place.parent)
        if not folders.holds(place) and (is_creatable or _exists(place)):
            return True
    return False


def _exists(place: Path) -> bool:
    try:
        return place.exists()
    except (OSError, ValueError):  # too long, or no path
        return False


def _forms(text: str, readings: Sequence[Callable[[str], str]]) -> dict[str, None]:
    """Returns the text, and what programs make of it that read it in several of these ways, in any order."""
    forms = {text: None}
    new = [text]
    for _ in range(_MOST_READINGS if len(text) <= _LONG else 1):
        read = dict.fromkeys(reading(form) for form in new for reading in readings)
        new = [form for form in read if form not in forms]
        forms |= dict.fromkeys(new)
        if not new:
            break
    return forms


def _stripped(text: str) -> str:
    """Removes hidden characters, and blanks and quotation marks around a text."""
    return visible(text).strip(_AROUND)


def _composed(text: str) -> str:
    """Replaces wide forms of letters and signs by plain ones."""
    return normalized("NFKC", text)


def _with_slashes(text: str) -> str:
    return text.replace("\\", "/")


def _expanded(text: str) -> str:
    """Replaces ``~`` by the user's folder."""
    try:
        return str(Path(text).expanduser()) if text.startswith("~") else text
    except (RuntimeError, ValueError):  # the home of an unknown user, or of one with a NUL
        return text


def _with_variables(text: str) -> str:
    """Replaces variables of this process as ``os.path.expandvars`` does, but in linear time."""
    return _VARIABLE.sub(lambda found: os.environ.get(found[1] or found[2], found[0]), text)


def _before_nul(text: str) -> str:
    return text.partition("\0")[0]


def _before_query(text: str) -> str:
    return _AFTER_PATH.split(text, maxsplit=1)[0]


def _address_of(text: str) -> re.Match[str] | None:
    """Parses an address; programs leave out tabs and line breaks in it (WHATWG, URL Standard, 4.4)."""
    return _ADDRESS.fullmatch(_IGNORED_IN_ADDRESSES.sub("", text))


def _path_of_address(text: str) -> str:
    """Returns the path of an address on this host; any other text as it is."""
    address = _address_of(text)
    is_here = address and (address["host"] or "").strip().lower() in _HERE
    return address["path"] if address and is_here else text


_SPELLINGS = (_stripped, _composed, unquote, _with_slashes, _expanded, _with_variables)
"""How a program may spell a path that it was given."""
_CUTS = (_before_nul, _before_query, _path_of_address)
"""What a program may leave out, if the text is a path at all."""


def _file_paths(form: str) -> list[str]:
    """Returns the paths that a ``file:`` address may mean: programs disagree about where it begins and ends."""
    address = _address_of(form)
    if address is None or address["scheme"].lower() != "file":
        return []
    host = address["host"] or ""
    path = address["path"]
    paths = [path, _AFTER_PATH.split(path)[0]]
    return paths if host.lower() in _HERE else [*paths, f"{host}{path}"]


def _joined(base: str, form: str) -> str:
    return form if form.startswith("/") else f"{base}/{form}"


def _places(base: str, form: str) -> list[Path]:
    """Returns where a path leads if ``..`` is resolved first, or after links; empty for what no path can be."""
    joined = _joined(base, form)
    lexical = os.path.normpath(joined)
    readings = [lexical, joined] if len(joined) <= _LONGEST else [lexical]
    try:
        return [Path(os.path.realpath(reading) if len(reading) <= _LONGEST else reading) for reading in readings]
    except ValueError:  # a NUL, at which some programs end it, or half of a character
        return []


def _texts(name: str, value: object) -> Iterator[tuple[str, str]]:
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
