"""Reads what a publisher says about MCP servers: Server Cards, AI Catalogs, and ``server.json`` of the MCP Registry.

A card is written by somebody else, and is read before anybody has agreed to it: nothing in it counts by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from callsheet.graphs.catalog.formats.manifests import parse_json
from callsheet.graphs.catalog.formats.openapi_operations import id_part
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.hidden import escaped_line
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.text.unicode import clean

CARD = "application/mcp-server-card+json"
AI_CATALOG = "application/ai-catalog+json"
LARGEST_CARD = 100_000
"""Bytes of a card that an AI Catalog names."""
LARGEST_DOCUMENT = 1_000_000
"""Bytes of a document with cards, such as an AI Catalog or an answer of a registry."""
MOST_CARDS = 100
"""Cards of one AI Catalog."""
LARGEST_COPY = LARGEST_DOCUMENT + MOST_CARDS * LARGEST_CARD
"""Bytes of an AI Catalog that holds all its cards."""
_LONGEST_SHOWN = 300
_NAME = r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+"


class _Published(Record):
    """A part of a document of the registry or a card; unknown fields are ignored, as both specifications want it."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel)


class Variable(_Published):
    """A value that a user gives, or that is fixed."""

    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    default: str | None = None
    value: str | None = None
    choices: tuple[str, ...] = ()


class Input(Variable):
    """A value; ``{name}`` in it stands for one of its variables."""

    variables: dict[str, Variable] = Field(default_factory=dict)


class NamedInput(Input):
    """A header, or a variable of the environment of a process."""

    name: str = Field(min_length=1, max_length=200)


class Argument(Input):
    """An argument of a command: its value, or a flag before it."""

    type: Literal["positional", "named"]
    name: str = ""
    value_hint: str = ""


class Remote(_Published):
    """An address of a server."""

    type: str
    url: str
    headers: tuple[NamedInput, ...] = ()
    variables: dict[str, Variable] = Field(default_factory=dict)


class Transport(_Published):
    """How a started package is spoken to."""

    type: str = "stdio"


class Package(_Published):
    """A package that can be started as a server."""

    registry_type: str
    identifier: str
    version: str = ""
    registry_base_url: str = ""
    runtime_hint: str = ""
    transport: Transport = Field(default_factory=Transport)
    runtime_arguments: tuple[Argument, ...] = ()
    package_arguments: tuple[Argument, ...] = ()
    environment_variables: tuple[NamedInput, ...] = ()


class ServerCard(_Published):
    """A Server Card (SEP-2127), or a ``server.json``, which has ``packages`` too."""

    name: str = Field(pattern=f"^{_NAME}$", min_length=3, max_length=200)
    version: str = Field(max_length=255)
    description: str = ""
    title: str = ""
    remotes: tuple[Remote, ...] = ()
    packages: tuple[Package, ...] = ()

    @property
    def short_name(self) -> str:
        """Returns the last part of the name, in the form of an id."""
        return id_part(self.name.partition("/")[2]) or id_part(self.name)


@dataclass(frozen=True, slots=True)
class CardEntry:
    """An entry of an AI Catalog: its card, or why there is none."""

    name: str
    card: ServerCard | None = None
    error: str = ""


def cards_in(content: bytes, where: str) -> tuple[CardEntry, ...] | None:
    """Returns the cards in a document: a card, a ``server.json``, an answer of a registry, or an AI Catalog.

    None if it is a document of another kind.

    Raises:
        CatalogError: It is a card or a catalog, and malformed.
    """
    document = _document(content, where)
    if document is None:
        return None
    match document:
        case {"openapi": _} | {"swagger": _}:
            return None
        case {"specVersion": str(), "entries": list()}:
            return _entries(document)
        case {"server": {"name": str()} as server}:
            return (CardEntry(where, _card(server, where)),)
        case {"name": str(), "version": str()} if document.keys() & {"remotes", "packages"} or _is_card(document):
            return (CardEntry(where, _card(document, where)),)
        case _:
            return None


def is_card_document(content: bytes, where: str) -> bool:
    """Returns whether a document is one of ``cards_in``, malformed or not."""
    try:
        return cards_in(content, where) is not None
    except CatalogError:
        return True


def linked_cards(content: bytes, where: str) -> tuple[str, ...]:
    """Returns the addresses of the cards that an AI Catalog names but does not hold, each once."""
    document = _document(content, where) or {}
    entries = _card_entries(document) if "specVersion" in document else []
    urls = [entry["url"] for entry in entries if "data" not in entry and isinstance(entry.get("url"), str)]
    return tuple(dict.fromkeys(urls))


def with_linked_cards(content: bytes, where: str, fetched: Mapping[str, bytes | str]) -> bytes:
    """Returns an AI Catalog that holds its cards; for one that was not fetched, it holds the reason, a text."""
    document = _document(content, where) or {}
    entries: list[JsonObject] = []
    for entry in _card_entries(document):
        kept: JsonObject = {"identifier": _identifier(entry), "type": CARD}
        card = fetched.get(str(entry.get("url")), "it holds no card, and names no address")
        if "data" in entry:
            kept["data"] = entry["data"]
        elif "error" in entry:
            kept["error"] = entry["error"]
        elif isinstance(card, str):
            kept["error"] = card
        else:
            kept["data"] = _document(card, where)
        entries.append(kept)
    whole = {"specVersion": document.get("specVersion"), "entries": entries}
    return json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")


def _document(content: bytes, where: str) -> JsonObject | None:
    """Returns a JSON object; None if it is something else, or too large to hold cards."""
    if len(content) > LARGEST_COPY:
        return None
    try:
        document = clean(parse_json(content, where))
    except CatalogError:
        return None
    return document if isinstance(document, dict) else None


def _card_entries(document: JsonObject) -> list[JsonObject]:
    """Returns the entries of an AI Catalog that are cards; the last one tells if there are too many."""
    entries = document.get("entries")
    found = [entry for entry in entries if _is_card_entry(entry)] if isinstance(entries, list) else []
    surplus = len(found) - MOST_CARDS
    if surplus <= 0 or (surplus == 1 and "error" in found[-1]):
        return found
    error = f"{surplus} more cards are left out: the first {MOST_CARDS} of an AI Catalog are read"
    return [*found[:MOST_CARDS], {"identifier": _identifier(found[MOST_CARDS]), "type": CARD, "error": error}]


def _entries(document: JsonObject) -> tuple[CardEntry, ...]:
    """Returns the cards of an AI Catalog; entries of other kinds are none of ours."""
    found: list[CardEntry] = []
    for entry in _card_entries(document):
        name = _identifier(entry)
        if "data" not in entry:
            why = entry.get("error") or "it holds no card, and names no address"
            found.append(CardEntry(name, error=shown_line(str(why))))
            continue
        try:
            found.append(CardEntry(name, _card(entry["data"], name)))
        except CatalogError as error:
            found.append(CardEntry(name, error=str(error)))
    return tuple(found)


def _is_card_entry(entry: object) -> bool:
    # The release candidate of AI Catalog writes "type"; an earlier draft "mediaType".
    return isinstance(entry, dict) and CARD in (entry.get("type"), entry.get("mediaType"))


def _identifier(entry: Mapping[str, object]) -> str:
    return shown_line(str(entry.get("identifier") or "a card without an identifier"))


def _is_card(document: Mapping[str, object]) -> bool:
    schema = document.get("$schema")
    return isinstance(schema, str) and schema.endswith(("/server-card.schema.json", "/server.schema.json"))


def _card(document: object, where: str) -> ServerCard:
    if not isinstance(document, dict):
        raise CatalogError(f"{shown_line(where)}: the card is not an object")
    try:
        return ServerCard(**document)
    except (CatalogError, TypeError) as error:
        raise CatalogError(f"{shown_line(where)}: the card is malformed: {escaped_line(str(error))}") from error


def shown_line(text: str) -> str:
    """Returns a text of a card as one line for people, with all characters escaped that are not printed."""
    line = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in escaped_line(text))
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 1]}…"
