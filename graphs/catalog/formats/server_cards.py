"""Reads what a publisher says about MCP servers: Server Cards, AI Catalogs, and ``server.json`` of the MCP Registry.

A card is written by somebody else, and is read before anybody has agreed to it: nothing in it counts by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

CARD = "application/mcp-server-card+json"
AI_CATALOG = "application/ai-catalog+json"
LARGEST_CARD = 1_000_000
"""Bytes of a card or an AI Catalog."""
MOST_CARDS = 100
"""Cards of one AI Catalog."""
_LONGEST_SHOWN = 200
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
        case {"specVersion": str(), "entries": list() as entries}:
            return _entries(entries)
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


def linked_cards(content: bytes, where: str) -> dict[str, str]:
    """Returns the addresses of the cards that an AI Catalog names but does not hold, by identifier."""
    document = _document(content, where)
    match document:
        case {"specVersion": str(), "entries": list() as entries}:
            cards = [entry for entry in entries[:MOST_CARDS] if _is_card_entry(entry) and "data" not in entry]
            return {_identifier(entry): entry["url"] for entry in cards if isinstance(entry.get("url"), str)}
        case _:
            return {}


def with_linked_cards(content: bytes, where: str, fetched: Mapping[str, bytes | str]) -> JsonObject:
    """Returns an AI Catalog that holds its cards; of one that was not fetched, it holds the reason, a text."""
    document = parse_json(content, where)
    entries: list[JsonObject] = []
    for entry in document["entries"][:MOST_CARDS]:
        if not _is_card_entry(entry):
            continue
        content_of_card = fetched.get(_identifier(entry), b"")
        kept: JsonObject = {"identifier": _identifier(entry), "type": CARD}
        if "data" in entry:
            kept["data"] = entry["data"]
        elif isinstance(content_of_card, str):
            kept["error"] = content_of_card
        else:
            kept["data"] = _document(content_of_card, where)
        entries.append(kept)
    return {"specVersion": document["specVersion"], "entries": entries}


def _document(content: bytes, where: str) -> JsonObject | None:
    """Returns a JSON object; None if it is something else, or too large for a card."""
    if len(content) > LARGEST_CARD:
        return None
    try:
        document = parse_json(content, where)
    except CatalogError:
        return None
    return document if isinstance(document, dict) else None


def _entries(entries: Sequence[object]) -> tuple[CardEntry, ...]:
    """Returns the cards of an AI Catalog; entries of other kinds are none of ours."""
    found: list[CardEntry] = []
    for entry in entries[:MOST_CARDS]:
        if not isinstance(entry, dict) or not _is_card_entry(entry):
            continue
        name = _identifier(entry)
        if "data" not in entry:
            found.append(CardEntry(name, error=str(entry.get("error") or "it holds no card, and names no address")))
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
    """Returns a text of a card as one line for people, with hidden characters escaped."""
    line = escaped_line(text)
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 1]}…"
