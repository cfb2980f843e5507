"""``$ref`` within one document, by JSON Pointer; nothing is read from anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referencing import Registry, Resource
from referencing.exceptions import Unresolvable

from callsheet.graphs.catalog.errors import CatalogError

_MOST_HOPS = 10
_LONGEST = 200


class References:
    """Looks up the references of a document.

    Args:
        document: The whole document.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        registry: Registry[Any] = Registry().with_resource("", Resource.opaque(document))
        self._resolver = registry.resolver()

    def lookup(self, reference: object) -> Any:
        """What a reference points to.

        Raises:
            CatalogError: It points to another document, or to nothing.
        """
        named = str(reference)[:_LONGEST]
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise CatalogError(
                f"$ref {named!r} is in another document, which is not read: "
                "bundle the specification into one file, for example with `npx @redocly/cli bundle`"
            )
        try:
            return self._resolver.lookup(reference).contents
        except (Unresolvable, ValueError, TypeError, LookupError) as error:
            raise CatalogError(f"$ref {named!r} points to nothing: correct it") from error

    def followed(self, found: Any) -> Any:
        """An object that is not a schema, with its reference resolved.

        Raises:
            CatalogError: It points to another document or to nothing, or references go in a circle.
        """
        for _ in range(_MOST_HOPS):
            if not (isinstance(found, dict) and "$ref" in found):
                return found
            found = self.lookup(found["$ref"])
        raise CatalogError(f"$ref {str(found)[:_LONGEST]!r} refers to itself: correct it")
