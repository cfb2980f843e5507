"""Addresses of databases."""

from __future__ import annotations

import re

from callsheet.graphs.catalog.errors import SettingsError

VALID = "a store is postgresql://user:password@host/database[?schema=name], the name in lower case, signs escaped"
"""What a valid address is; never shown with an invalid one, which may hold a password."""
_SCHEMES = ("postgresql://", "postgres://")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,40}")


def is_address(place: str) -> bool:
    """Whether this is the address of a database, rather than a folder.

    Raises:
        SettingsError: It is an address of something else.
    """
    if "://" in place and not place.startswith((*_SCHEMES, "http://", "https://")):
        raise SettingsError(f"{place.partition('://')[0]}:// is not an address of a store: {VALID}")
    return place.startswith(_SCHEMES)


def split_address(address: str) -> tuple[str, str]:
    """The address without the parameter ``schema``, and the schema, ``callsheet`` by default.

    Raises:
        SettingsError: It is invalid.
    """
    place, _, query = address.partition("?")
    options = [option for option in query.split("&") if option]
    named = [option.removeprefix("schema=") for option in options if option.startswith("schema=")]
    schema = named[-1] if named else "callsheet"
    if not is_address(address) or not _SCHEMA.fullmatch(schema):
        raise SettingsError(VALID)
    kept = "&".join(option for option in options if not option.startswith("schema="))
    return f"{place}?{kept}" if kept else place, schema
