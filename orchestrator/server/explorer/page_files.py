"""The static files of the page, and the security headers of all responses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

_MEDIA = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
"""Headers of every response: no inline scripts, nothing from other sites, no text as markup."""


def home(request: Request) -> Response:
    """Redirects from the address without a slash to the page, relative to its mount point."""
    name = request.url.path.rpartition("/")[2]
    return RedirectResponse(f"{name}/", headers=HEADERS)


def page(request: Request) -> Response:
    """One file of the page."""
    name = request.url.path.rpartition("/callsheet/")[2] or "explorer.html"
    body, tag = _files()[name]
    headers = {**HEADERS, "etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=_MEDIA[name.rpartition(".")[2]], headers=headers)


def names() -> tuple[str, ...]:
    """Names of the page's further files."""
    return tuple(name for name in _files() if name != "explorer.html")


def _within(folder: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    """All files below a folder, by their paths within it."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _within(entry, f"{before}{entry.name}/")
        else:
            yield f"{before}{entry.name}", entry.read_bytes()


@cache
def _files() -> Mapping[str, tuple[bytes, str]]:
    """All files with their entity tags, read once: the event loop must not wait for the disk."""
    page = files("callsheet.orchestrator.server.explorer").joinpath("page")
    found = dict(_within(page))
    return {name: (body, f'"{hashlib.sha256(body).hexdigest()[:16]}"') for name, body in found.items()}
