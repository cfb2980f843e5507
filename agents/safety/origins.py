"""Whether two addresses are of one server: credentials and calls go to no other."""

from __future__ import annotations

from callsheet.graphs.catalog.errors import CatalogError


def origin(address: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address, as the client that sends requests reads it.

    Raises:
        CatalogError: It is none.
    """
    import httpx2

    try:
        url = httpx2.URL(address)
    except (httpx2.InvalidURL, ValueError) as error:
        raise CatalogError(f"{address!r} is not an address: {error}") from error
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)
