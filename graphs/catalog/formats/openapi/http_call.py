"""How a tool of an OpenAPI specification is called over HTTP; a part of its definition, which pins cover."""

from __future__ import annotations

from typing import Literal

from callsheet.graphs.catalog.record import Record

META = "callsheet/http"
"""Where in ``_meta`` of a tool's definition this is."""
Where = Literal["path", "query", "header", "cookie"]


class Place(Record):
    """Where an argument goes.

    Attributes:
        name: Name in the request.
        where: Part of the request.
        style: How lists and objects are written, by OpenAPI's names; ``json`` for a value in JSON.
        explode: Whether each item of a list or object is written by itself.
    """

    argument: str
    name: str
    where: Where
    style: str
    explode: bool


class HttpCall(Record):
    """A request with places for its arguments.

    Attributes:
        method: Method in capitals.
        path: Path after the server's address, with ``{name}`` for each path parameter.
        media: Media type of the body; empty without one.
        body: The argument that is the body; empty if all arguments without a place are fields of it.
    """

    method: str
    path: str
    places: tuple[Place, ...] = ()
    media: str = ""
    body: str = ""
